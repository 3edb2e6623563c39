"""The warnings of a result: rejected requests, undefined latencies, and overload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from numpy.typing import NDArray

from simqueue.request import Status
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.latencies import OVERLOADED_SHARE
from simqueue.results.metrics import has_status
from simqueue.results.steadiness import STEADY
from simqueue.results.window import Window

_HARDLY_ANYTHING: Final = 0.05
"""Share of the traffic whose loss is not worth a warning: random arrivals do not end at one time."""

if TYPE_CHECKING:
    from simqueue.results.summary import Row


def nothing_measured(row: Row, warmup_s: float) -> list[str]:
    """Return why the latencies of one run are undefined; nothing if they are defined."""
    n = row["n_requests"]
    if row["measured_requests"] or not n:
        return []
    if row["warmup_excluded"] == n:
        return [f"all {n} requests arrived before warmup_s = {warmup_s:g}: nothing is measured"]
    if row["completed"]:
        return ["no request that arrived after the warm-up finished: latencies are undefined"]
    return [f"none of {n} requests finished: latencies are undefined"]


def cut_off(requests: Mapping[str, NDArray[Any]], window: Window | None) -> list[str]:
    """Return how many requests of a steady window the end of the run left unfinished; nothing if none are."""
    if window is None:
        return []
    inside = window.arrived(requests)
    left = int((inside & has_status(requests, Status.UNFINISHED)).sum())
    if not left:
        return []
    return [
        f"{left} of {int(inside.sum())} requests of the window were unfinished when the run ended; latencies are of "
        "the others, and so too low"
    ]


def first_to_end(window: Window | None) -> list[str]:
    """Return which workload ends a steady window before the others do; nothing if it leaves hardly anything out."""
    if window is None or window.left_out < _HARDLY_ANYTHING:
        return []
    return [
        f"the steady window ends with the first workload that does ('{window.ended_by}', at {window.end_s:.4g} s): the "
        f"last {100 * window.left_out:.0f} % of the traffic are not measured"
    ]


def rejections(runs: Sequence[Mapping[str, NDArray[Any]]]) -> list[str]:
    """Return how many requests of one policy's runs were rejected, with the reason of the first; nothing if none were.

    Parameters
    ----------
    runs : sequence of mapping
        The `requests` columns of each run.
    """
    masks = [has_status(requests, Status.REJECTED) for requests in runs]
    count = sum(int(mask.sum()) for mask in masks)
    if not count:
        return []
    reason = next(requests["reject_reason"][mask][0] for requests, mask in zip(runs, masks, strict=True) if mask.any())
    total = sum(len(mask) for mask in masks)
    return [f"{count} of {total} requests rejected" + (f"; first reason: {reason}" if reason else "")]


def overload(row: Row) -> list[str]:
    """Return the warning about an overloaded policy; nothing for other policies and for rows of request classes."""
    if row["request_class"] != ALL_CLASSES or row["overloaded"] is not True or row["rejected"] == row["n_requests"]:
        return []  # if all requests are rejected, the load has no effect
    load = row["load"]
    if isinstance(load, float) and load >= 1:
        why = f"offered load {load:.2f}"
    else:
        why = "more came than could be done" if row["bounded"] else "the queue grew during the whole run"
        why += f", although the estimated load is {load:.2f}" if isinstance(load, float) else ""
    if row["bounded"]:
        return [
            f"overloaded ({why}), but bounded: {_unanswered(row)}, so the queue does not grow; latencies are of those "
            "that are served"
        ]
    hidden = "; there is no steady state, so no latencies are shown" if row["window"] == STEADY else ""
    return [f"overloaded ({why}): latencies grow with the length of the run{hidden}"]


def _unanswered(row: Row) -> str:
    """Return which shares of the requests have no answer."""
    total = row["n_requests"]
    parts = {"are rejected": row["rejected"], "time out": row["timed_out"]}
    return " and ".join(
        f"{100 * n / total:.1f} % of the requests {what}"
        for what, n in parts.items()
        if isinstance(n, int) and n and isinstance(total, int)
    )


def unclear(row: Row) -> list[str]:
    """Return the warning about a policy of open traffic whose steady window may not be steady; nothing for others."""
    if row["request_class"] != ALL_CLASSES or row["overloaded"] is not None or row["window"] != STEADY:
        return []
    if row["bounded"] or row["mean_ttft_ms"] is None:
        return []  # it is steady in any case, or there are no latencies to doubt
    return ["it cannot be told whether it is overloaded: its latencies are those of a steady state only if it is not"]


def rush(row: Row) -> list[str]:
    """Return the warning about a policy that is overloaded in a part of the time; nothing for others."""
    share = row.get(OVERLOADED_SHARE)
    if row["request_class"] != ALL_CLASSES or not isinstance(share, float) or not share or row["overloaded"] is True:
        return []
    return [
        f"more requests arrive than can be served in {100 * share:.1f} % of the time: the queue grows then, and "
        "latencies depend on when a request arrives"
    ]
