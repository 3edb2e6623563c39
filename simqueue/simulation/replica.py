"""A replica: one scheduler process that holds one GPU while there is work."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass
from typing import Any

import simpy
from simpy.events import Event

from simqueue.request import Job
from simqueue.schedulers.base import Later, Plan, Policy
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.simulation.recorder import Recorder
from simqueue.steptime.base import StepTime

NEVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is played, beside what is played.

    Attributes
    ----------
    horizon_s : float
        The run ends here (inclusive); infinity: when nothing is left to do.
    fast : bool
        Whether equal steps in a row become one event. The tables are the same, byte for byte.
    check : bool
        Whether the policy's invariants are verified after every commit.
    ticks_per_s : int or None
        Step ends are rounded to this many ticks a second.
    """

    horizon_s: float = NEVER_S
    fast: bool = True
    check: bool = False
    ticks_per_s: int | None = None


class Fold:
    """Steps under way: `n` equal ones in a row, as one event that can be moved forward."""

    __slots__ = ("ends_s", "event", "n", "start_s", "waiting")

    def __init__(self, start_s: float, ends_s: list[float]) -> None:
        self.start_s = start_s
        self.ends_s = ends_s
        self.n = len(ends_s)
        self.event: Event | None = None
        self.waiting: list[tuple[int, int]] = []
        """(first step of the fold that sees it, requests waiting then), where the queue grew under way."""

    def step_at(self, now_s: float) -> int:
        """Return the index of the step that is under way at `now_s`, or ends just then."""
        return bisect_left(self.ends_s, now_s, 0, self.n)


class Replica:
    """Plans, runs and commits steps for as long as there is something to run.

    Parameters
    ----------
    env : simpy.Environment
    policy, step_time, recorder : the parts it joins
    options : RunOptions
    on_finish : callable
        Called with each request that leaves with its whole answer.
    """

    def __init__(
        self,
        env: simpy.Environment,
        policy: Policy,
        step_time: StepTime,
        recorder: Recorder,
        options: RunOptions,
        on_finish: Callable[[Job], None],
    ) -> None:
        self.env = env
        self.policy = policy
        self.gpu = simpy.Resource(env, capacity=1)
        self._step_time = step_time
        self._recorder = recorder
        self._options = options
        self._on_finish = on_finish
        self._fold: Fold | None = None
        self._idle: Event | None = None
        self._wake_s = float("inf")
        self._states: set[Hashable] = set()
        env.process(self._schedule())

    def submit(self, job: Job) -> None:
        """Take in a request that has arrived now."""
        changes = self.policy.add(job)
        self._states.clear()
        if self._idle is not None:
            self._wake_at(self.env.now)
        elif self._fold is not None:
            self._told(self._fold, changes)

    def _schedule(self) -> Generator[Event, Any, None]:
        ask_again_s = NEVER_S
        while True:
            yield from self._sleep(ask_again_s)
            with self.gpu.request() as hold:
                yield hold
                ask_again_s = yield from self._busy_period()

    def _busy_period(self) -> Generator[Event, Any, float]:
        """Run steps until nothing can run; return when to ask again."""
        env, policy = self.env, self.policy
        while True:
            plan = policy.plan(env.now)
            if plan is None:
                return NEVER_S
            if isinstance(plan, Later):
                return plan.time_s
            self._recorder.planned(plan, env.now)
            circle = self._in_a_circle(plan)
            if plan.batch.decode_seqs or plan.batch.prefill:
                yield from self._run(plan)
            else:
                policy.commit(plan)
            if circle:
                return NEVER_S
            if env.peek() <= env.now:
                yield clock.at(env, env.now, Order.PLAN)

    def _run(self, plan: Plan) -> Generator[Event, Any, None]:
        now_s = self.env.now
        self._fold = fold = Fold(now_s, self._ends(plan, now_s))
        fold.event = clock.at(self.env, fold.ends_s[-1], Order.STEP_END)
        yield fold.event
        self._fold = None
        self._commit(plan, fold)

    def _ends(self, plan: Plan, now_s: float) -> list[float]:
        options = self._options
        n = plan.repeat if options.fast else 1
        ticks = options.ticks_per_s
        if ticks is None:
            ends_s = self._step_time.ends(now_s, plan.batch, n)
        else:
            ends_s = []
            for duration_s in self._step_time.durations(plan.batch, n):
                now_s = round((now_s + duration_s) * ticks) / ticks
                ends_s.append(now_s)
        if ends_s[-1] > options.horizon_s:
            del ends_s[max(1, bisect_right(ends_s, options.horizon_s)) :]
        return ends_s

    def _commit(self, plan: Plan, fold: Fold) -> None:
        policy, recorder = self.policy, self._recorder
        ends_s = fold.ends_s if fold.n == len(fold.ends_s) else fold.ends_s[: fold.n]
        past, start_s, waiting = 0, fold.start_s, plan.waiting
        for first, then_waiting in fold.waiting:
            if past < first < fold.n:
                recorder.rows.add(plan, past, start_s, ends_s[past:first], waiting, policy.kv.used)
                policy.take(plan, first - past)
                past, start_s = first, ends_s[first - 1]
            if first < fold.n:
                waiting = then_waiting
        recorder.rows.add(plan, past, start_s, ends_s[past:] if past else ends_s, waiting, policy.kv.used)
        policy.take(plan, fold.n - 1 - past)
        policy.commit(plan)
        recorder.ran(plan, fold.start_s, ends_s)
        if plan.ticking or plan.first:
            self._states.clear()
        for job in plan.finishing:
            recorder.finished(job, ends_s[-1])
            self._on_finish(job)
        if self._options.check:
            policy.check()

    def _told(self, fold: Fold, changes: bool) -> None:
        step = fold.step_at(self.env.now)
        if changes and step < fold.n - 1 and fold.event is not None:
            fold.n = step + 1
            fold.event = clock.move(fold.event, fold.ends_s[step], Order.STEP_END)
        elif not changes:
            fold.waiting.append((step + 1, self.policy.waiting_count))

    def _sleep(self, until_s: float) -> Generator[Event, Any, None]:
        self._idle = Event(self.env)
        self._wake_s = NEVER_S
        if until_s < NEVER_S:
            self._wake_at(until_s)
        yield self._idle
        self._idle = None

    def _wake_at(self, time_s: float) -> None:
        if self._idle is None or time_s >= self._wake_s:
            return
        if self._wake_s == NEVER_S:
            clock.put(self._idle, time_s, Order.PLAN)
        else:
            self._idle = clock.move(self._idle, time_s, Order.PLAN)
        self._wake_s = time_s

    def _in_a_circle(self, plan: Plan) -> bool:
        """Whether the state at a preempting step has been seen since the last token or arrival: a livelock."""
        if not plan.preempted:
            return False
        state = self.policy.state()
        if state in self._states:
            return True
        self._states.add(state)
        return False
