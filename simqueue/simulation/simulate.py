"""One run of one policy: requests, the scheduler and the GPU as SimPy processes and resources."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import simpy
from simpy.events import Event

from simqueue.frontend import FrontEnd
from simqueue.request import QUEUE_FULL, Job, Request, Status
from simqueue.schedulers.base import Policy
from simqueue.simulation import clock
from simqueue.simulation.clients import Clients, Life
from simqueue.simulation.clock import Order
from simqueue.simulation.columns import Sinks
from simqueue.simulation.invariants import verify
from simqueue.simulation.options import NEVER_S, Observer, RunOptions
from simqueue.simulation.recorder import Recorder
from simqueue.simulation.recording import Recording
from simqueue.simulation.replica import Replica
from simqueue.steptime.base import StepTime
from simqueue.traffic import Traffic

ARRIVAL, FINISHED = Order.ARRIVAL, Status.FINISHED  # members of an enumeration take long to look up in Python 3.11
NAMED = 10
"""How many requests a warning names before it only counts."""


class Simulation:
    """Plays requests through one replica.

    Parameters
    ----------
    requests : Traffic, or iterable of Request in order of arrival
    policy : Policy
        A new one; the run changes it.
    step_time : StepTime
    options : RunOptions
    on_end : callable, optional
        Called with the number of requests that have ended, each time one ends.
    observer : callable, optional
        Called with each step that ends, if steps are not folded.
    sinks : callable, optional
        Where the tables go during the run; by default they are kept in memory.
    """

    def __init__(
        self,
        requests: Traffic | Iterable[Request],
        policy: Policy,
        step_time: StepTime,
        options: RunOptions,
        on_end: Callable[[int], None] | None = None,
        observer: Observer | None = None,
        sinks: Sinks | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self._front_end = None if options.front_end is None else FrontEnd(options.front_end)
        self.recorder = Recorder(
            counts_slots=policy.counts_idle_slots, policy=type(policy).__name__, front_end=options.front_end
        )
        if sinks is not None:
            self.recorder.stream_to(sinks)
        self.policy = policy
        self._step_time = step_time
        self.options = options
        self._on_end = on_end
        self._done: dict[Job, Event] = {}
        self._in_front: dict[Job, None] = {}
        """Requests in the front end, which the scheduler does not know yet."""
        self._answered: dict[Job, None] = {}
        """Requests whose answers are made, and whose clients will give up before they see them."""
        self._last_event_s = 0.0
        self.replica = Replica(self.env, policy, step_time, self.recorder, options, self._finish, observer)
        self._arrived = 0
        traffic = requests if isinstance(requests, Traffic) else Traffic(list(requests))
        self._clients = Clients(self.env, self, traffic.rules)
        self.env.process(self._source(traffic.requests))
        for group in traffic.session_groups:
            self._clients.start(group)

    def run(self) -> Recording:
        """Run to the horizon, or until nothing is left to do.

        Returns
        -------
        Recording

        Raises
        ------
        RunError
            If an invariant is broken (with ``options.check``).
        """
        horizon_s = self.options.horizon_s
        with _without_garbage_collection():
            if horizon_s < NEVER_S:
                self.env.run(until=clock.at(self.env, horizon_s, Order.HORIZON))
            else:
                self.env.run()
        unfinished = self.recorder.inside or self._clients.waiting()
        end_s = horizon_s if horizon_s < NEVER_S and unfinished else self._last_event_s
        end_s = max(end_s, self.recorder.last_end_s)
        warnings = [*self._stuck_warnings(), *self._not_folded(), *self.policy.remarks()]
        for job in self.replica.cancelled():
            self.recorder.timed_out(job, end_s)
        for job in self._in_front:
            self.recorder.left_front_end(job, end_s, Status.UNFINISHED)
        self.recorder.unfinished(end_s)
        for request in self._clients.never_sent(end_s):
            self.never_sent(request, Status.UNFINISHED)
        began_s = self.replica.step_began_s()
        running_s = None if began_s is None else end_s - began_s
        recording = self.recorder.recording(self.policy.kv, end_s, warnings, running_s)
        if self.options.check:
            shortest_s = 0.0 if self.options.ticks_per_s else self._step_time.shortest_s()
            verify(recording, self.policy, self.recorder, shortest_s)
        return recording

    def _source(self, requests: Iterable[Request]) -> Generator[Event, Any, None]:
        """Start the process of each request when it arrives."""
        env = self.env
        first = True
        for request in requests:
            if request.arrival_s > clock.now(env) or first:
                yield clock.at(env, request.arrival_s, ARRIVAL)
                first = False
            clock.begin(env, self.serve(request) if request.pool is None else self._clients.ask(request))

    def serve(self, request: Request) -> Life:
        """Send one request to the replica and wait until it ends; return how it ended."""
        now_s = clock.now(self.env)
        self._last_event_s = now_s
        if request.gives_up_s is not None and request.gives_up_s <= now_s:
            self.never_sent(request, Status.TIMED_OUT)
            return Status.TIMED_OUT
        job = Job(request, self._arrived)
        self._arrived += 1
        front_end = self._front_end
        reason = self.policy.rejection(request) or (self._full_queue() if front_end is None else None)
        if reason is not None:
            self.recorder.rejected(job, now_s, reason)
            self._report_end()
            return Status.REJECTED
        self.recorder.arrived(job, now_s)
        done = Event(self.env)
        self._done[job] = done
        if front_end is None:
            self.replica.submit(job)
        else:
            self._enter(front_end, job, now_s)
        if request.gives_up_s is not None:
            timer = clock.at(self.env, request.gives_up_s, Order.TIMEOUT)
            timer.callbacks.append(lambda _: self._time_out(job))
        status: Status = yield done
        if front_end is not None and job.first_token_s is not None and status is FINISHED:
            seen_s = job.first_token_s + front_end.times.delay_s(request.prompt_tokens)
            if seen_s > clock.now(self.env):
                yield clock.at(self.env, seen_s, Order.STEP_END)
        return status

    def _enter(self, front_end: FrontEnd, job: Job, now_s: float) -> None:
        """Send a request through the front end."""
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
            return
        self._last_event_s = job.submitted_s
        self.recorder.left_front_end(job, job.submitted_s, Status.REJECTED, reason)
        self._report_end()
        clock.happen(self._done.pop(job), Status.REJECTED)

    def _full_queue(self) -> str | None:
        """Return why no request can join the queue now, or None. Requests that will get a free seat do not count."""
        limit = self.options.max_queued_requests
        if limit is None:
            return None
        waiting, free = self.policy.waiting_count, self.policy.free_seats
        if waiting < limit + free:
            return None
        return f"{QUEUE_FULL}: {waiting} requests wait, {free} seats are free, max_queued_requests is {limit}"

    def never_sent(self, request: Request, status: Status) -> None:
        """Record a request that ends at its client and was never sent."""
        self._last_event_s = clock.now(self.env)
        self.recorder.never_sent(Job(request, self._arrived), request.arrival_s, status)
        self._arrived += 1
        self._report_end()

    def _time_out(self, job: Job) -> None:
        done = self._done.pop(job, None)
        if done is not None:
            self._last_event_s = clock.now(self.env)
            served = self._cancel(job)
            self._report_end()
            clock.happen(
                done, Status.TIMED_OUT
            )  # its client reacts before the clients of requests that leave because of it
            for other in served:
                self._finish(other)

    def _cancel(self, job: Job) -> list[Job]:
        """Cancel a request wherever it is; return the requests that leave with all their tokens because of it."""
        if job in self._in_front:
            del self._in_front[job]
            self.recorder.left_front_end(job, clock.now(self.env), Status.TIMED_OUT)
        elif job in self._answered:
            del self._answered[job]
            self.recorder.timed_out(job, clock.now(self.env))
        else:
            return self.replica.cancel(job)
        return []

    def _finish(self, job: Job, status: Status = FINISHED) -> None:
        self._last_event_s = clock.now(self.env)
        if job in self.recorder.inside:
            self._answered[job] = None
            return
        self._report_end()
        clock.happen(self._done.pop(job), status)

    def _report_end(self) -> None:
        if self._on_end is not None:
            self._on_end(self.recorder.ended_count)

    def _not_folded(self) -> list[str]:
        """Return a warning if undeclared rules kept steps from being folded."""
        rules = self.replica.undeclared
        if not rules:
            return []
        owners = dict.fromkeys(rule.split(".")[0] for rule in rules)
        named = {owner: [rule.split(".")[1] for rule in rules if rule.startswith(f"{owner}.")] for owner in owners}
        declarations = ", ".join(f"steady_rules = {tuple(names)!r} in {owner}" for owner, names in named.items())
        return [
            f"each step was planned separately, which is slower: {', '.join(rules)} not declared as steady; if the "
            f"answers stay the same while equal steps repeat, declare it: {declarations}"
        ]

    def _stuck_warnings(self) -> list[str]:
        stuck = list(self.recorder.inside)
        if not stuck or self.options.horizon_s < NEVER_S:
            return []
        names = ", ".join(job.request.request_id for job in stuck[:NAMED])
        more = f" and {len(stuck) - NAMED} more" if len(stuck) > NAMED else ""
        many, verb = ("request", "is") if len(stuck) == 1 else ("requests", "are")
        reason = self.policy.waits_for()
        told = f"; {reason}" if reason else ""
        return [f"{len(stuck)} {many} can never be completed and {verb} unfinished: {names}{more}{told}"]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector: a run makes no reference cycles, and looking for them costs a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
