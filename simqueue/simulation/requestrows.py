"""The requests table: one row per request, in the order in which requests end.

A request that has ended does not change any more. So its row is read later, together with a thousand others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import nan
from operator import attrgetter
from typing import Any

from simqueue.frontend import FrontEndTimes
from simqueue.request import Job, Request, Status
from simqueue.simulation.columns import Columns
from simqueue.simulation.recording import Table
from simqueue.simulation.stays import whole

ENDED_AT_ONCE = 1024

_ASKED = (
    "request_id",
    "request_class",
    "arrival_s",
    "prompt_tokens",
    "output_tokens",
    "attempt",
    "session",
    "client",
)
"""Columns read from a request."""
_HAPPENED = ("index", "output_tokens", "preemptions", "cached_tokens", "recomputed_tokens", "tokens_emitted")
"""Columns read from a job; its output tokens are the due tokens."""
_TIMES = ("submitted_s", "first_scheduled_s", "first_token_s", "last_token_s", "max_itl_s")
"""Columns read from a job that can be missing."""

FrontEndOf = Callable[[Job], FrontEndTimes | None]

_OF_ROUTED = {"routed_s": "d", "reached_s": "d", "route_reason": "o", "resent": "q", "discarded_tokens": "q"}
"""Further columns of a fleet."""

_asked, _happened, _times = attrgetter(*_ASKED), attrgetter(*_HAPPENED), attrgetter(*_TIMES)


class RequestRows:
    """Requests that have ended.

    Parameters
    ----------
    front_end : callable or None
        A request -> what delays its first token on the way to its client.
    routed : bool
        Whether a router chose the replicas: further columns say when and why, and which stays failed.

    Attributes
    ----------
    columns : Columns
    ended : list of (Job, status, end, reason, replica)
        Requests whose rows are still to be read. The caller that adds to it flushes it when it has `ENDED_AT_ONCE`.
    special : dict of str to Request
        By id, requests with more than an arrival and lengths (`Request.is_special`).
    """

    def __init__(self, front_end: FrontEndOf | None = None, *, routed: bool = False) -> None:
        self._front_end = front_end
        self._routed = routed
        further = dict(_OF_ROUTED) if routed else {}
        self.columns = Columns(
            index="q",
            request_id="o",
            request_class="o",
            arrival_s="d",
            prompt_tokens="q",
            output_tokens="q",
            due_tokens="q",
            status="o",
            reject_reason="o",
            replica="q",
            submitted_s="d",
            first_scheduled_s="d",
            first_token_s="d",
            first_token_delay_s="d",
            last_token_s="d",
            finish_s="d",
            max_itl_s="d",
            preemptions="q",
            cached_tokens="q",
            recomputed_tokens="q",
            tokens_emitted="q",
            wanted_s="d",
            attempt="q",
            session="o",
            client="o",
            **further,
        )
        self.special: dict[str, Request] = {}
        self.ended: list[tuple[Job, Status, float, str | None, int]] = []

    def arrays(self) -> Table:
        """Return the finished table."""
        self.flush()
        return self.columns.arrays()

    def flush(self) -> None:
        """Read the rows of the requests that have ended."""
        if not self.ended:
            return
        jobs, statuses, ends_s, reasons, replicas = zip(*self.ended, strict=True)
        self.ended.clear()
        further = _routed(jobs) if self._routed else {}
        if self._routed:
            jobs = tuple(map(whole, jobs))
        requests = [job.request for job in jobs]
        self.special.update((request.request_id, request) for request in requests if request.is_special)
        unfinished = Status.UNFINISHED
        happened = dict(zip(_HAPPENED, zip(*map(_happened, jobs), strict=True), strict=True))
        columns: dict[str, Sequence[Any]] = {
            **happened,
            "due_tokens": happened["output_tokens"],
            **dict(zip(_TIMES, map(_seconds, zip(*map(_times, jobs), strict=True)), strict=True)),
            **dict(zip(_ASKED, zip(*map(_asked, requests), strict=True), strict=True)),
            "first_token_delay_s": list(map(self.delay_s, jobs)),
            "status": [status.value for status in statuses],
            "reject_reason": reasons,
            "replica": replicas,
            "finish_s": [
                nan if status is unfinished else end_s for status, end_s in zip(statuses, ends_s, strict=True)
            ],
            **further,
            "wanted_s": [request.arrival_s if request.wanted_s is None else request.wanted_s for request in requests],
        }
        self.columns.extend([columns[name] for name in self.columns.names])

    def delay_s(self, job: Job) -> float:
        """Return how long the first token is on its way to the client; NaN if it never gets there.

        There may be none, or the client gives up before.
        """
        if self._front_end is None:
            return 0.0
        made_s, until_s = job.first_token_s, job.request.gives_up_s
        if made_s is None:
            return nan
        times = self._front_end(job)
        delay_s = 0.0 if times is None else times.delay_s(job.request.prompt_tokens)
        return nan if until_s is not None and made_s + delay_s > until_s else delay_s


def _seconds(times_s: Iterable[float | None]) -> list[float]:
    return [nan if time_s is None else time_s for time_s in times_s]


def _routed(jobs: Sequence[Job]) -> dict[str, Sequence[Any]]:
    """Return the further columns of a fleet."""
    trips = [job.trip for job in jobs]
    return {
        "routed_s": _seconds(None if trip is None else trip.routed_s for trip in trips),
        "reached_s": _seconds(None if trip is None else trip.reached_s for trip in trips),
        "route_reason": [None if trip is None else trip.reason for trip in trips],
        "resent": [0 if trip is None else max(0, trip.sent - 1) for trip in trips],
        "discarded_tokens": [
            0 if trip is None or trip.keeps_tokens else sum([stay.tokens_emitted for stay in trip.lost])
            for trip in trips
        ],
    }
