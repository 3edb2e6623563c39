"""What a run itself shows about overload: when its requests come, leave, and are worked on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.frontend import FrontEndTimes
from simqueue.request import QUEUE_FULL, Status
from simqueue.results.metrics import Floats, Mask, has_status
from simqueue.results.window import entries
from simqueue.simulation.recording import Recording
from simqueue.statistics.overload import Evidence, evidence
from simqueue.statistics.stays import Stays
from simqueue.statistics.verdict import Law, is_bounded, is_overloaded


class Signs:
    """What a run shows, found when it is first asked for and then kept.

    Only requests whose arrival depends on no response show overload: the others wait for earlier responses, so their
    number is bounded however slow the server is. Requests that a full queue refuses are work that came; those that a
    policy rejects whatever its queue are not.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def overloaded(self, law: Law) -> bool | None:
        """Return whether more work came than could be done; None if it cannot be told."""
        return is_overloaded(law, self._evidence, dependent=not self._independent.all())

    def unsteady(self, law: Law) -> bool | None:
        """Return whether the run has no steady state: it is overloaded and nothing bounds it; None as above."""
        return False if self.bounded else self.overloaded(law)

    @cached_property
    def bounded(self) -> bool:
        """Whether requests that leave without an answer keep the number in the system from growing."""
        taken = ~_rejected_for_good(self._recording.requests)
        return is_bounded(_stays(self._recording, taken))

    @property
    def arrives_openly(self) -> bool:
        """Whether any request arrives whatever the responses to others: the traffic is no closed loop."""
        return bool(self._independent.any())

    @cached_property
    def _independent(self) -> Mask:
        return independent(self._recording.requests)

    @cached_property
    def _evidence(self) -> Evidence | None:
        taken = self._independent & ~_rejected_for_good(self._recording.requests)
        return evidence(_stays(self._recording, taken))


def independent(requests: Mapping[str, NDArray[Any]]) -> Mask:
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
    found = independent(requests)
    if servable:
        found &= ~_rejected_for_good(requests)
    return np.asarray(requests.get("wanted_s", requests["arrival_s"])[found])


def _rejected_for_good(requests: Mapping[str, NDArray[Any]]) -> Mask:
    """Return a mask of the requests that the policy rejects whatever its queue."""
    return has_status(requests, Status.REJECTED) & ~_refused(requests)


def _refused(requests: Mapping[str, NDArray[Any]]) -> Mask:
    """Return a mask of the requests that a full queue refuses, at their arrival or behind a front end."""
    found = has_status(requests, Status.REJECTED)
    rejected = np.flatnonzero(found)
    if len(rejected):
        found[rejected] = [str(reason).startswith(QUEUE_FULL) for reason in requests["reject_reason"][rejected]]
    return found


def stay(recording: Recording) -> tuple[Floats, Floats]:
    """Return when each request arrived and left, in seconds, in order of arrival; infinity if it never left."""
    requests = recording.requests
    still_there = has_status(requests, Status.UNFINISHED)
    return requests["arrival_s"], np.where(still_there, np.inf, requests["finish_s"])


def _reach_s(recording: Recording) -> Floats:
    """Return when requests would reach the scheduler if they waited for nothing.

    They come when their client wants them, also if it sends them later; a retry comes by itself. The round trip and the
    front end's own work on a request take their time without any overload.
    """
    requests = recording.requests
    arrival_s = requests.get("wanted_s", requests["arrival_s"])
    if "attempt" in requests:
        arrival_s = np.where(requests["attempt"] > 0, requests["arrival_s"], arrival_s)
    if recording.front_end is not None:
        arrival_s = arrival_s + _unhindered_s(recording, recording.front_end)
    return np.asarray(arrival_s)


def _unhindered_s(recording: Recording, front_end: FrontEndTimes) -> Floats:
    """Return how long each request takes to the scheduler if it waits for nothing."""
    prompt_tokens = recording.requests["prompt_tokens"]
    if recording.fleet is None:
        return np.asarray(front_end.unhindered_s(prompt_tokens))
    times = [replica.front_end or FrontEndTimes() for replica in recording.fleet.replicas]
    spans_s = np.zeros(len(prompt_tokens))
    for number, own in enumerate(times):
        here = recording.requests["replica"] == number
        spans_s[here] = own.unhindered_s(prompt_tokens[here])
    return spans_s


def _served(recording: Recording) -> tuple[Mask, Floats]:
    """Return a mask of the requests that were served to clients who had given up, and when each left the server."""
    requests = recording.requests
    if recording.front_end is None:
        return np.zeros(len(requests["finish_s"]), dtype=np.bool_), requests["finish_s"]
    served = np.isnan(requests["first_token_delay_s"]) & (requests["tokens_emitted"] == requests["due_tokens"])
    return served, np.where(served, requests["last_token_s"], requests["finish_s"])


def _stays(recording: Recording, chosen: Mask) -> Stays:
    """Return the stays of some requests, without those that ended on their way to the server."""
    requests = recording.requests
    served, leave_s = _served(recording)
    arrival_s, gone_s = _reach_s(recording), np.fmin(leave_s, recording.end_s)
    if recording.front_end is not None:
        chosen = chosen & ((arrival_s <= gone_s) | ~np.isnan(requests["submitted_s"]))
        arrival_s = np.minimum(arrival_s, gone_s)  # they differ by rounding
    lost = (has_status(requests, Status.REJECTED) | has_status(requests, Status.TIMED_OUT)) & ~served
    refused = _refused(requests)
    return Stays(
        arrival_s=arrival_s[chosen],
        start_s=_or_never(requests["first_scheduled_s"][chosen]),
        first_token_s=_or_never(requests["first_token_s"][chosen]),
        leave_s=_or_never(leave_s[chosen]),
        prompt_tokens=requests["prompt_tokens"][chosen],
        output_tokens=requests.get("due_tokens", requests["output_tokens"])[chosen],
        made_tokens=requests["tokens_emitted"][chosen],
        lost=lost[chosen],
        refused=refused[chosen],
        end_s=recording.end_s,
    )


def _or_never(times_s: Floats) -> Floats:
    return np.where(np.isnan(times_s), np.inf, times_s)
