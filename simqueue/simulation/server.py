"""The server that clients see: one replica. A fleet of several builds on it."""

from __future__ import annotations

from collections.abc import Callable

import simpy
from simpy.events import Event

from simqueue.request import Job, Request, Status
from simqueue.simulation import clock
from simqueue.simulation.clients import Life
from simqueue.simulation.clock import Order
from simqueue.simulation.request_log import RequestLog
from simqueue.simulation.requestrows import FrontEndOf
from simqueue.simulation.site import Listener, Site

FINISHED = Status.FINISHED  # members of an enumeration take long to look up in Python 3.11


class OneServer(Listener):
    """Serves requests at one replica.

    Parameters
    ----------
    env : simpy.Environment
    log : RequestLog
    front_end : callable or None
        A request -> what delays its first token on the way to its client.
    on_end : callable or None
        Called with the number of requests that have ended, each time one ends.

    Attributes
    ----------
    last_event_s : float
        When a request was sent or ended last.
    arriving : bool
        Whether what is sent at this moment arrives from outside, and not in reaction to something else.
    """

    def __init__(
        self,
        env: simpy.Environment,
        log: RequestLog,
        front_end: FrontEndOf | None,
        on_end: Callable[[int], None] | None,
    ) -> None:
        self.env = env
        self.log = log
        self.last_event_s = 0.0
        self.arriving = False
        self._front_end = front_end
        self._on_end = on_end
        self._done: dict[Job, Event] = {}
        self._arrived = 0
        self._site: Site | None = None

    def stand_before(self, site: Site) -> None:
        """Send all requests to this site."""
        self._site = site

    def serve(self, request: Request) -> Life:
        """Send one request to the server and wait until it ends; return how it ended."""
        now_s = clock.now(self.env)
        self.last_event_s = now_s
        if request.gives_up_s is not None and request.gives_up_s <= now_s:
            self.never_sent(request, Status.TIMED_OUT)
            return Status.TIMED_OUT
        job = Job(request, self._arrived)
        self._arrived += 1
        reason = self._refusal(job, now_s)
        if reason is not None:
            self.log.ended(job, now_s, Status.REJECTED, reason)
            self._report_end()
            return Status.REJECTED
        self.log.arrived(job, now_s)
        done = Event(self.env)
        self._done[job] = done
        self._send(job, now_s)
        if request.gives_up_s is not None:
            timer = clock.at(self.env, request.gives_up_s, Order.TIMEOUT)
            timer.callbacks.append(lambda _: self._time_out(self._present(job)))
        status: Status = yield done
        if self._front_end is not None and status is FINISHED:
            made_s, times = self._first_token_s(job), self._front_end(job)
            seen_s = 0.0 if made_s is None or times is None else made_s + times.delay_s(request.prompt_tokens)
            if seen_s > clock.now(self.env):
                yield clock.at(self.env, seen_s, Order.STEP_END)
        return status

    def never_sent(self, request: Request, status: Status) -> None:
        """Record a request that ends at its client and was never sent."""
        self.last_event_s = clock.now(self.env)
        self.log.ended(Job(request, self._arrived), request.arrival_s, status)
        self._arrived += 1
        self._report_end()

    # -- what a fleet does in another way ------------------------------------------------------------------------

    def _refusal(self, job: Job, now_s: float) -> str | None:
        """Return why a new request is rejected at once, or None."""
        site = self._site
        return "no replica" if site is None else site.rejection(job.request)

    def _send(self, job: Job, now_s: float) -> None:
        """Send a request that was not rejected to where it is served."""
        if self._site is not None:
            self._site.send(job, now_s)

    def _cancel(self, job: Job) -> list[Job]:
        """Cancel a request wherever it is; return the requests that leave with all their tokens because of it."""
        return [] if self._site is None else self._site.cancel(job)

    def _present(self, job: Job) -> Job:
        """Return the present stay of the request that arrived as `job`."""
        return job

    def _first_token_s(self, job: Job) -> float | None:
        """Return when the first token of the answer was made."""
        return job.first_token_s

    # -- how requests end ----------------------------------------------------------------------------------------

    def ended(self, job: Job, status: Status) -> None:
        """Tell the client of a request that is served or ended with an error."""
        self.last_event_s = clock.now(self.env)
        self._report_end()
        clock.happen(self._done.pop(job), status)

    def refused(self, job: Job, reason: str) -> None:
        """Reject a request that a full queue refuses behind the front end."""
        now_s = clock.now(self.env)
        self.log.left(job, now_s, Status.REJECTED, reason, replica=-1)
        self.ended(job, Status.REJECTED)

    def _time_out(self, job: Job) -> None:
        done = self._done.pop(job, None)
        if done is None:
            return
        self.last_event_s = clock.now(self.env)
        served = self._cancel(job)
        self._report_end()
        clock.happen(done, Status.TIMED_OUT)  # its client reacts before those of requests that leave because of it
        for other in served:
            self.ended(other, FINISHED)

    def _report_end(self) -> None:
        if self._on_end is not None:
            self._on_end(self.log.ended_count)
