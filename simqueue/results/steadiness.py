"""Whether a run has a steady state, and what of its summary may be read as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from simqueue.request import Status
from simqueue.results.metrics import Floats, Mask, has_status
from simqueue.statistics.overload import BACKLOG_SHARE, Trend, is_overloaded, overlap_share, trend

if TYPE_CHECKING:
    from simqueue.results.summary import Row
    from simqueue.simulation.recording import Recording

WHOLE_RUN: Final = "whole run"
STEADY: Final = "steady"
_STEADY_STATE: Final = tuple(
    [f"{s}_{m}_ms" for m in ("ttft", "tpot", "itl", "e2el") for s in ("mean", "median", "p95", "p99")]
    + ["mean_queue_ms"]
)
_LEAST_FOR_NOTICE: Final = 20
_HARDLY_MEET: Final = 0.05


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """What a policy is asked for against what it can carry.

    Attributes
    ----------
    load : float or None
        Arrival rate over capacity; None where either is unknown.
    binding : str or None
        What limits the capacity: slots, tokens, kv or compute.
    """

    load: float | None = None
    binding: str | None = None


def stay(recording: Recording) -> tuple[Floats, Floats]:
    """Return when each request came and went, in seconds, in order of arrival; infinity where it stayed."""
    requests = recording.requests
    still_there = has_status(requests, Status.UNFINISHED)
    return requests["arrival_s"], np.where(still_there, np.inf, requests["finish_s"])


def run_trend(recording: Recording) -> Trend | None:
    """Return how the number inside developed while requests arrived; None of too few requests."""
    return trend(*stay(recording))


def judged(rows: list[Row], recording: Recording, offered: OfferedLoad, warmup_s: float) -> list[Row]:
    """Return the rows of one run with load, binding, overloaded, window and warm-up filled in."""
    added: Row = {
        "load": offered.load,
        "binding": offered.binding,
        "overloaded": _overloaded(offered.load, recording),
        "window": STEADY if warmup_s > 0 else WHOLE_RUN,
        "warmup_s": warmup_s,
    }
    return [row | added for row in rows]


def _overloaded(load: float | None, recording: Recording) -> bool | None:
    """Return whether the run has no steady state; None where neither load nor trend can tell.

    Without a load, people who wait for answers before they ask again are left out: however slow the server, they never
    are more than they are. What they and all others do together still shows that a queue grows.
    """
    found = run_trend(recording)
    if load is not None or (found is not None and found.rising):
        return is_overloaded(load, found)
    alone = _asks_unanswered(recording)
    if not alone.any():
        return None
    arrival_s, leave_s = stay(recording)
    given_up = float(np.mean(has_status(recording.requests, Status.TIMED_OUT)[alone]))
    return is_overloaded(None, trend(arrival_s[alone], leave_s[alone]), conclusive=given_up <= BACKLOG_SHARE)


def _asks_unanswered(recording: Recording) -> Mask:
    """Return which requests came whatever became of others: those of no session and no client, shape (n_requests,)."""
    requests = recording.requests
    alone = np.ones(len(requests["arrival_s"]), dtype=np.bool_)
    for name in ("session", "client"):
        if name in requests:
            alone &= np.array([label is None for label in requests[name]], dtype=np.bool_)
    return alone


def shown(row: Row, *, overloaded: bool) -> Row:
    """Return a row as it may be shown: without the latencies of a steady state that does not exist.

    In an overloaded policy with a warm-up no latency is shown: it was meant as a steady state's, and there is none.
    With replications the policy is judged as a whole. Hiding only those replications that look overloaded would leave
    the mean of the lucky ones.
    """
    if not (overloaded and row["window"] == STEADY):
        return row
    hidden = (*_STEADY_STATE, *(f"ci_{end}_{name}" for end in ("low", "high") for name in _STEADY_STATE))
    return {name: None if name in hidden else value for name, value in row.items()}


def too_light(recordings: list[Recording]) -> str | None:
    """Return a notice if so few requests meet each other in any of the runs that policies cannot differ.

    Runs in which hardly anybody was served say nothing about the load: who is refused meets nobody.
    """
    shares = [
        overlap_share(*stay(recording)) for recording in recordings if len(recording.requests) and _enough(recording)
    ]
    known = [share for share in shares if share is not None]
    if not known or max(known) >= _HARDLY_MEET:
        return None
    return (
        f"at most {100 * max(known):.1f} % of the requests found another one inside: at so low a load policies cannot "
        "differ; raise the rate, or start elsewhere in the trace"
    )


def _enough(recording: Recording) -> bool:
    return int(has_status(recording.requests, Status.FINISHED).sum()) >= _LEAST_FOR_NOTICE
