"""Whether a run has a steady state, and which parts of its summary describe one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from simqueue.request import Status
from simqueue.results.latencies import parsed
from simqueue.results.metrics import Floats, Mask, has_status
from simqueue.statistics.overload import BACKLOG_SHARE, Trend, is_overloaded, overlap_share, trend

if TYPE_CHECKING:
    from simqueue.results.summary import Row
    from simqueue.simulation.recording import Recording

WHOLE_RUN: Final = "whole run"
STEADY: Final = "steady"
_LEAST_FOR_NOTICE: Final = 20
_LEAST_OVERLAP: Final = 0.05


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """The offered load of a policy.

    Attributes
    ----------
    load : float or None
        Arrival rate over capacity; None if either is unknown.
    binding : str or None
        The resource that limits the capacity: slots, tokens, kv or compute.
    """

    load: float | None = None
    binding: str | None = None


def stay(recording: Recording) -> tuple[Floats, Floats]:
    """Return when each request arrived and left, in seconds, in order of arrival; infinity if it never left."""
    requests = recording.requests
    still_there = has_status(requests, Status.UNFINISHED)
    return requests["arrival_s"], np.where(still_there, np.inf, requests["finish_s"])


def run_trend(recording: Recording) -> Trend | None:
    """Return how the number of requests in the system developed; None with too few requests."""
    return trend(*stay(recording))


def judged(rows: list[Row], recording: Recording, offered: OfferedLoad, warmup_s: float) -> list[Row]:
    """Return the rows of one run with load, binding, overloaded, window and warmup_s filled in."""
    added: Row = {
        "load": offered.load,
        "binding": offered.binding,
        "overloaded": _overloaded(offered.load, recording),
        "window": STEADY if warmup_s > 0 else WHOLE_RUN,
        "warmup_s": warmup_s,
    }
    return [row | added for row in rows]


def _overloaded(load: float | None, recording: Recording) -> bool | None:
    """Return whether the run has no steady state; None if neither load nor trend can tell.

    A rising trend of all requests always shows overload. Otherwise, and without a load, only requests of no session and
    no client count. The others wait for earlier responses, so their number is bounded however slow the server is.
    """
    found = run_trend(recording)
    if load is not None or (found is not None and found.rising):
        return is_overloaded(load, found)
    independent = _independent(recording)
    if not independent.any():
        return None
    arrival_s, leave_s = stay(recording)
    timed_out = float(np.mean(has_status(recording.requests, Status.TIMED_OUT)[independent]))
    found = trend(arrival_s[independent], leave_s[independent])
    return is_overloaded(None, found, conclusive=timed_out <= BACKLOG_SHARE)


def _independent(recording: Recording) -> Mask:
    """Return a mask of the requests whose arrival depends on no response: those of no session and no client."""
    requests = recording.requests
    found = np.ones(len(requests["arrival_s"]), dtype=np.bool_)
    for name in ("session", "client"):
        if name in requests:
            found &= np.array([label is None for label in requests[name]], dtype=np.bool_)
    return found


def shown(row: Row, *, overloaded: bool) -> Row:
    """Return a row without the latencies of a steady state that does not exist.

    With a warm-up, latencies describe the steady state, so an overloaded policy has none. With replications, all rows
    of the policy are treated alike: to remove only the replications that look overloaded would bias the mean.
    """
    if not (overloaded and row["window"] == STEADY):
        return row
    return {name: None if _is_latency(name) else value for name, value in row.items()}


def _is_latency(name: str) -> bool:
    """Return whether a column is a latency of a steady state, or an end of its interval."""
    plain = name.removeprefix("ci_low_").removeprefix("ci_high_")
    return plain == "mean_queue_ms" or parsed(plain) is not None


def too_light(recordings: list[Recording]) -> str | None:
    """Return a warning if the load is so low in all runs that policies cannot differ.

    Runs with fewer than 20 finished requests do not count: if requests are rejected, few are in the system together.
    """
    shares = [
        overlap_share(*stay(recording)) for recording in recordings if len(recording.requests) and _enough(recording)
    ]
    known = [share for share in shares if share is not None]
    if not known or max(known) >= _LEAST_OVERLAP:
        return None
    return (
        f"at most {100 * max(known):.1f} % of the requests arrived while another request was in the system: at such a "
        "low load policies cannot differ; raise the rate, or use another part of the trace"
    )


def _enough(recording: Recording) -> bool:
    return int(has_status(recording.requests, Status.FINISHED).sum()) >= _LEAST_FOR_NOTICE
