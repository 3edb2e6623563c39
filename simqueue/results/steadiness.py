"""Whether a run has a steady state, and which parts of its summary describe one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from simqueue.request import Status
from simqueue.results.latencies import CAPACITY, OVERLOADED_SHARE, parsed
from simqueue.results.metrics import Floats, Mask, has_status
from simqueue.results.window import entries
from simqueue.statistics.overload import WEAK_SHARE, Law, Stays, evidence, is_overloaded, overlap_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from simqueue.results.summary import Row
    from simqueue.simulation.recording import Recording

WHOLE_RUN: Final = "whole run"
STEADY: Final = "steady"
_LEAST_FOR_NOTICE: Final = 20
_LEAST_OVERLAP: Final = 0.05
_TIMES: Final = ("first_scheduled_s", "first_token_s", "finish_s")


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """The offered load of a policy.

    Attributes
    ----------
    load : float or None
        Arrival rate over capacity; None if either is unknown.
    binding : str or None
        The resource that limits the capacity: slots, tokens, kv or compute.
    doubtful : bool
        Whether the capacity is less accurate than usual.
    capacity_rps : float or None
        Admitted requests per second that it can serve.
    overloaded_share : float or None
        Share of the time in which more requests arrive than that.
    varies : bool
        Whether the rate of arrivals changes with time.
    """

    load: float | None = None
    binding: str | None = None
    doubtful: bool = False
    capacity_rps: float | None = None
    overloaded_share: float | None = None
    varies: bool = False

    @property
    def rushes(self) -> bool:
        """Whether more requests arrive than can be served in a part of the time that is worth a column."""
        return self.varies and bool(self.overloaded_share)


def stay(recording: Recording) -> tuple[Floats, Floats]:
    """Return when each request arrived and left, in seconds, in order of arrival; infinity if it never left."""
    requests = recording.requests
    still_there = has_status(requests, Status.UNFINISHED)
    return requests["arrival_s"], np.where(still_there, np.inf, requests["finish_s"])


def judged(rows: list[Row], recording: Recording, offered: OfferedLoad, warmup_s: float) -> list[Row]:
    """Return the rows of one run with load, binding, overloaded, window and warmup_s filled in."""
    added: Row = {
        "load": offered.load,
        "binding": offered.binding,
        "overloaded": overloaded(recording, offered),
        "window": STEADY if warmup_s > 0 else WHOLE_RUN,
        "warmup_s": warmup_s,
    }
    if rows and OVERLOADED_SHARE in rows[0]:
        added |= {CAPACITY: offered.capacity_rps, OVERLOADED_SHARE: offered.overloaded_share}
    return [row | added for row in rows]


def overloaded(recording: Recording, offered: OfferedLoad) -> bool | None:
    """Return whether a run has no steady state; None if it cannot be told.

    Only requests whose arrival depends on no response count: the others wait for earlier responses, so their number is
    bounded however slow the server is. For the same reason, a run with other requests, or in which requests leave
    without a response, can show overload, but not its absence.
    """
    requests = recording.requests
    independent = _independent(requests)
    refused = has_status(requests, Status.REJECTED)
    admitted = independent & ~refused
    found = evidence(_stays(recording, admitted)) if admitted.any() else None
    unanswered = refused | has_status(requests, Status.TIMED_OUT)
    bounded = not independent.all() or int(np.count_nonzero(unanswered)) > WEAK_SHARE * len(unanswered)
    law = Law(offered.load, offered.capacity_rps, doubtful=offered.doubtful)
    return is_overloaded(law, found, bounded=bounded)


def arrives_openly(recording: Recording) -> bool:
    """Return whether any request of a run arrives whatever the responses to others: the traffic is no closed loop."""
    return bool(_independent(recording.requests).any())


def _independent(requests: Mapping[str, NDArray[Any]]) -> Mask:
    """Return a mask of the requests whose arrival depends on no response: no users, retries and later turns."""
    found = entries(requests)
    if "client" in requests:
        found = found & np.array([label is None for label in requests["client"]], dtype=np.bool_)
    return found


def open_arrivals_s(recording: Recording, *, servable: bool = False) -> Floats:
    """Return when the requests arrive whose arrival depends on no response, in no order.

    Parameters
    ----------
    recording : Recording
    servable : bool
        Leave out those that the policy rejects whatever its queue: they are no load.
    """
    requests = recording.requests
    found = _independent(requests)
    if servable:
        rejected = np.flatnonzero(has_status(requests, Status.REJECTED))
        for_good = [not str(reason).startswith("queue full") for reason in requests["reject_reason"][rejected]]
        found[rejected[np.array(for_good, dtype=np.bool_)]] = False
    return np.asarray(requests.get("wanted_s", requests["arrival_s"])[found])


def _stays(recording: Recording, chosen: Mask) -> Stays:
    """Return the stays of some requests; they arrive when their client wants them, also if it sends them later."""
    requests = recording.requests
    never = {name: np.where(np.isnan(requests[name]), np.inf, requests[name])[chosen] for name in _TIMES}
    return Stays(
        arrival_s=requests.get("wanted_s", requests["arrival_s"])[chosen],
        start_s=never["first_scheduled_s"],
        first_token_s=never["first_token_s"],
        leave_s=never["finish_s"],
        prompt_tokens=requests["prompt_tokens"][chosen],
        output_tokens=requests.get("due_tokens", requests["output_tokens"])[chosen],
        made_tokens=requests["tokens_emitted"][chosen],
        end_s=recording.end_s,
    )


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
