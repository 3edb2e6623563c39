"""One replica with what stands before it: a queue that can be full, and a front end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import simpy

from simqueue.frontend import FrontEnd
from simqueue.request import QUEUE_FULL, Job, Request, Status
from simqueue.schedulers.base import Policy
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.simulation.options import Observer, RunOptions
from simqueue.simulation.replica import Replica
from simqueue.simulation.replica_log import ReplicaLog
from simqueue.simulation.request_log import RequestLog
from simqueue.steptime.base import StepTime

ARRIVAL, FINISHED = Order.ARRIVAL, Status.FINISHED  # members of an enumeration take long to look up in Python 3.11


class Listener:
    """Who is told what becomes of the requests of a site."""

    @abstractmethod
    def ended(self, job: Job, status: Status) -> None:
        """Learn that `job` is served or ended with an error, and is logged."""
        raise NotImplementedError

    @abstractmethod
    def refused(self, job: Job, reason: str) -> None:
        """Learn that a full queue refuses `job` behind the front end; it is not logged."""
        raise NotImplementedError


class Site:
    """One replica and its front end.

    Parameters
    ----------
    env : simpy.Environment
    policy : Policy
        A new one.
    step_time : StepTime
    log : ReplicaLog
    requests : RequestLog
    options : RunOptions
    listener : Listener
    observer : callable, optional
        Called with each step that ends, if steps are not folded.
    """

    def __init__(
        self,
        env: simpy.Environment,
        policy: Policy,
        step_time: StepTime,
        log: ReplicaLog,
        requests: RequestLog,
        options: RunOptions,
        listener: Listener,
        observer: Observer | None = None,
    ) -> None:
        self.env = env
        self.policy = policy
        self.log = log
        self.replica = Replica(env, policy, step_time, log, options, self._finish, observer)
        self._front_end = None if options.front_end is None else FrontEnd(options.front_end)
        self._requests = requests
        self._inside = requests.inside
        self._most_queued = options.max_queued_requests
        self._listener = listener
        self._in_front: dict[Job, None] = {}
        """Requests in the front end, which the scheduler does not know yet."""
        self._answered: dict[Job, None] = {}
        """Requests whose answers are made, and whose clients will give up before they see them."""

    # -- questions -----------------------------------------------------------------------------------------------

    def rejection(self, request: Request) -> str | None:
        """Return why `request` cannot be taken now, or None."""
        reason = self.policy.rejection(request)
        return reason or (self._full_queue() if self._front_end is None else None)

    def _full_queue(self) -> str | None:
        """Return why no request can join the queue now, or None. Requests that will get a free seat do not count."""
        limit = self._most_queued
        if limit is None:
            return None
        waiting, free = self.policy.waiting_count, self.policy.free_seats
        if waiting < limit + free:
            return None
        return f"{QUEUE_FULL}: {waiting} requests wait, {free} seats are free, max_queued_requests is {limit}"

    # -- what happens --------------------------------------------------------------------------------------------

    def send(self, job: Job, now_s: float) -> None:
        """Take in a request. Precondition: it is inside, and there is no `rejection`."""
        front_end = self._front_end
        if front_end is None:
            self.replica.submit(job)
            return
        self._in_front[job] = None
        passed_s = front_end.passed_s(now_s, job.request.prompt_tokens, self.policy.due_tokens(job.request))
        if passed_s > now_s:
            passed = clock.at(self.env, passed_s, ARRIVAL)
            passed.callbacks.append(lambda _: self._passed(job))
        else:
            self._passed(job)

    def _passed(self, job: Job) -> None:
        """Hand a request to the scheduler, unless its client has gone or the queue is full."""
        if job not in self._in_front:
            return
        del self._in_front[job]
        job.submitted_s = clock.now(self.env)
        reason = self._full_queue()
        if reason is None:
            self.replica.submit(job)
        else:
            self._listener.refused(job, reason)

    def cancel(self, job: Job) -> list[Job]:
        """Cancel a request wherever it is; return the requests that leave with all their tokens because of it."""
        now_s = clock.now(self.env)
        if job in self._in_front:
            del self._in_front[job]
            self._requests.left(job, now_s, Status.TIMED_OUT, replica=-1)
        elif job in self._answered:
            del self._answered[job]
            self.log.timed_out(job, now_s)
        else:
            return [other for other in self.replica.cancel(job) if not self._is_held_back(other)]
        return []

    def close(self, end_s: float) -> None:
        """Log the end of the run for the requests that are still here."""
        for job in self.replica.cancelled():
            self.log.timed_out(job, end_s)
        for job in self._in_front:
            self._requests.left(job, end_s, Status.UNFINISHED, replica=-1)

    def stop(self, now_s: float, jobs: Sequence[Job]) -> float | None:
        """Fail: log what has ended by now, and nothing after it; return how long the step under way had run.

        None: no step was under way.

        Parameters
        ----------
        now_s : float
        jobs : sequence of Job
            All requests that were sent here and have not ended; they stay inside, for the caller to deal with.
        """
        lost_s = self.replica.stop()
        for job in self.replica.cancelled():
            self.log.timed_out(job, now_s)
        self._in_front.clear()
        self._answered.clear()
        for job in jobs:
            self.log.tokens.left(job)
        return lost_s

    def tokens(self, jobs: Iterable[Job]) -> int:
        """Return the prompt and output tokens of the requests at the scheduler, as far as they exist.

        Parameters
        ----------
        jobs : iterable of Job
            Those that were sent here and have not ended; some can be in the front end.
        """
        known = [job for job in jobs if self._has(job)] + self.replica.cancelled()
        return sum([job.request.prompt_tokens + self._tokens_made(job) for job in known])

    def _has(self, job: Job) -> bool:
        return (job.trip is None or job.trip.reached) and job not in self._in_front and job not in self._answered

    def _tokens_made(self, job: Job) -> int:
        """Return how many tokens of a request have been made by now."""
        made = self.log.tokens.made(job)
        if job.joined_tick is not None:
            made += self.replica.ticks_ended()
        return min(made, job.output_tokens)

    def _finish(self, job: Job, status: Status) -> None:
        if not self._is_held_back(job):
            self._listener.ended(job, status)

    def _is_held_back(self, job: Job) -> bool:
        """Keep a request that the server is done with, if its client is not: it gives up before it sees a token."""
        if job not in self._inside:
            return False
        self._answered[job] = None
        return True
