"""One run of one policy: requests, the scheduler and the GPU as SimPy processes and resources."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import simpy
from simpy.events import Event

from simqueue.request import Job, Request
from simqueue.schedulers.base import Policy
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.simulation.invariants import verify
from simqueue.simulation.recorder import Recorder
from simqueue.simulation.recording import Recording
from simqueue.simulation.replica import NEVER_S, Observer, Replica, RunOptions
from simqueue.steptime.base import StepTime

NAMED = 10
"""How many requests a warning names before it only counts."""


class Simulation:
    """Plays requests through one replica.

    Parameters
    ----------
    requests : iterable of Request
        In order of arrival.
    policy : Policy
        A fresh one; it is changed by the run.
    step_time : StepTime
    options : RunOptions
    on_end : callable, optional
        Called with the number of requests that have left, each time one leaves.
    observer : callable, optional
        Called with each step that ends, if steps are not folded.
    """

    def __init__(
        self,
        requests: Iterable[Request],
        policy: Policy,
        step_time: StepTime,
        options: RunOptions,
        on_end: Callable[[int], None] | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.recorder = Recorder(counts_slots=policy.pads)
        self.policy = policy
        self.options = options
        self._on_end = on_end
        self._done: dict[Job, Event] = {}
        self._last_event_s = 0.0
        self.replica = Replica(self.env, policy, step_time, self.recorder, options, self._finish, observer)
        self.env.process(self._source(requests))

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
                end_s = horizon_s if self.recorder.inside else self._last_event_s
            else:
                self.env.run()
                end_s = self._last_event_s
        warnings = self._stuck_warnings()
        self.recorder.unfinished(end_s)
        recording = self.recorder.recording(self.policy.kv, end_s, warnings)
        if self.options.check:
            verify(recording, self.policy, self.recorder)
        return recording

    def _source(self, requests: Iterable[Request]) -> Generator[Event, Any, None]:
        """Create each request's process at the instant of its arrival."""
        env = self.env
        for index, request in enumerate(requests):
            if request.arrival_s > env.now or index == 0:
                yield clock.at(env, request.arrival_s, Order.ARRIVAL)
            env.process(self._request(Job(request, index)))

    def _request(self, job: Job) -> Generator[Event, Any, None]:
        """Live through one request's life: ask, wait, leave."""
        now_s = self.env.now
        self._last_event_s = now_s
        reason = self.policy.refusal(job.request)
        if reason is not None:
            self.recorder.rejected(job, now_s, reason)
            self._tell_end()
            return
        self.recorder.arrived(job, now_s)
        done = Event(self.env)
        self._done[job] = done
        self.replica.submit(job)
        yield done

    def _finish(self, job: Job) -> None:
        self._last_event_s = self.env.now
        self._done.pop(job).succeed()
        self._tell_end()

    def _tell_end(self) -> None:
        if self._on_end is not None:
            self._on_end(self.recorder.ended_count)

    def _stuck_warnings(self) -> list[str]:
        stuck = list(self.recorder.inside)
        if not stuck or self.options.horizon_s < NEVER_S:
            return []
        names = ", ".join(job.request.request_id for job in stuck[:NAMED])
        more = f" and {len(stuck) - NAMED} more" if len(stuck) > NAMED else ""
        return [f"{len(stuck)} requests could never run to their end and are unfinished: {names}{more}"]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the collector: the run makes no cycles, and looking for them costs a third of it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
