"""What a run itself shows about overload: when its requests come, leave, and are worked on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.request import Status
from simqueue.results.metrics import Floats, Mask, has_status
from simqueue.results.window import entries
from simqueue.simulation.recording import Recording
from simqueue.statistics.overload import WEAK_SHARE, Evidence, Law, Stays, evidence, is_overloaded

_TIMES: Final = ("first_scheduled_s", "first_token_s", "finish_s")


class Signs:
    """What a run shows, found when it is first asked for and then kept.

    Only requests whose arrival depends on no response count: the others wait for earlier responses, so their number is
    bounded however slow the server is. For the same reason, a run with other requests, or in which requests leave
    without a response, can show overload, but not its absence.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def overloaded(self, law: Law) -> bool | None:
        """Return whether the run has no steady state; None if it cannot be told."""
        return is_overloaded(law, self._evidence, bounded=self._bounded)

    @property
    def arrives_openly(self) -> bool:
        """Whether any request arrives whatever the responses to others: the traffic is no closed loop."""
        return bool(self._independent.any())

    @cached_property
    def _independent(self) -> Mask:
        return independent(self._recording.requests)

    @cached_property
    def _evidence(self) -> Evidence | None:
        admitted = self._independent & ~has_status(self._recording.requests, Status.REJECTED)
        return evidence(_stays(self._recording, admitted)) if admitted.any() else None

    @cached_property
    def _bounded(self) -> bool:
        requests = self._recording.requests
        unanswered = has_status(requests, Status.REJECTED) | has_status(requests, Status.TIMED_OUT)
        return not self._independent.all() or int(np.count_nonzero(unanswered)) > WEAK_SHARE * len(unanswered)


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
        rejected = np.flatnonzero(has_status(requests, Status.REJECTED))
        for_good = [not str(reason).startswith("queue full") for reason in requests["reject_reason"][rejected]]
        found[rejected[np.array(for_good, dtype=np.bool_)]] = False
    return np.asarray(requests.get("wanted_s", requests["arrival_s"])[found])


def stay(recording: Recording) -> tuple[Floats, Floats]:
    """Return when each request arrived and left, in seconds, in order of arrival; infinity if it never left."""
    requests = recording.requests
    still_there = has_status(requests, Status.UNFINISHED)
    return requests["arrival_s"], np.where(still_there, np.inf, requests["finish_s"])


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
