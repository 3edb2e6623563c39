"""A replica: one scheduler process that holds one GPU while there is work."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any

import simpy
from simpy.events import Event

from simqueue.request import Job
from simqueue.schedulers.base import Plan, Policy
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.simulation.ends import StepEnds
from simqueue.simulation.flight import Flight, RowPart
from simqueue.simulation.options import NEVER_S, Observer, RunOptions, SeenStep
from simqueue.simulation.recorder import Recorder
from simqueue.steptime.base import Batch, StepTime

STEP_END, PLAN = Order.STEP_END, Order.PLAN  # members of an enumeration take long to look up in Python 3.11


class Replica:
    """Plans, runs and commits steps for as long as there is something to run.

    Parameters
    ----------
    env : simpy.Environment
    policy, step_time, recorder : the parts it joins
    options : RunOptions
    on_finish : callable
        Called with each request that leaves with its whole answer.
    observer : callable, optional
        Called with each step, if steps are not folded.
    """

    def __init__(
        self,
        env: simpy.Environment,
        policy: Policy,
        step_time: StepTime,
        recorder: Recorder,
        options: RunOptions,
        on_finish: Callable[[Job], None],
        observer: Observer | None = None,
    ) -> None:
        self.env = env
        self.policy = policy
        self.gpu = simpy.Resource(env, capacity=1)
        self._recorder = recorder
        self._fast = options.fast
        self._check = options.check
        self._ends = StepEnds(env, step_time, options, one_at_a_time=policy.depth == 1)
        self._on_finish = on_finish
        self._observer = observer
        self._next: Plan | None = None
        self._next_waiting: list[tuple[int, int]] = []
        self._flight: Flight | None = None
        self._last: Flight | None = None
        self._leaving: dict[Job, None] = {}
        self._idle: Event | None = None
        self._wake_s = NEVER_S
        self._states: set[Hashable] = set()
        env.process(self._schedule())

    def submit(self, job: Job) -> None:
        """Take in a request that has arrived now."""
        self._told(changes=self.policy.add(job))

    def cancel(self, job: Job) -> list[Job]:
        """Let `job` go whose client has gone now; return who leaves with a whole answer because of that.

        One that waits is gone at once, one that runs at the end of the step under way: that is when the server
        can let go, and the time that is recorded. Precondition: it was submitted and has not left.
        """
        if self._steps_to_see(job):
            self._leaving[job] = None
            self._told(changes=True)
        elif self.policy.pads and self.policy.holds_seat(job):
            return self._leave_wave(job)
        else:
            changes = self.policy.cancel(job)
            self._recorder.timed_out(job, self.env.now)
            self._told(changes=changes)
        return []

    def _leave_wave(self, job: Job) -> list[Job]:
        """Let `job` go between two steps of its wave, which may end with that for others too: return these."""
        nothing = Batch()
        plan = Plan(nothing, 1, 0, 0, 0, nothing, self.policy.kv.used)
        self._leaving[job] = None
        self.policy.withdraw(plan, job)
        self.policy.commit(plan)
        served = self._part(plan, self.env.now)
        self._told(changes=True)
        return served

    def _steps_to_see(self, job: Job) -> bool:
        """Whether `job` must see the end of steps that are planned or running before it can be let go."""
        runs = self.policy.holds_seat(job)
        if self._next is not None:
            return runs or job in self._next.preempted
        if self._flight is None and self._last is not None and runs:
            # all of its steps are taken already: it leaves with the last of them
            self.policy.withdraw(self._last.plan, job)
        return runs and (self._flight is not None or self._last is not None)

    def leaving(self) -> list[Job]:
        """Return whose clients have gone and who still run until the end of the step under way."""
        return list(self._leaving)

    def step_began_s(self) -> float | None:
        """Return when the step that is under way began; None between steps and while nothing runs."""
        flight = self._flight or self._last
        if flight is None:
            return None
        return flight.ends_s[-2] if len(flight.ends_s) > 1 else flight.start_s

    def _told(self, *, changes: bool) -> None:
        """React to something told to the policy; `changes`: whether it may change a repeated plan."""
        self._states.clear()
        if self._idle is not None:
            self._wake_at(self.env.now)
        elif self._next is not None:
            # planned, but not started: its repeats are planned when it starts, or later
            if changes:
                self._next.repeat = 1
            self._next_waiting.append((1, self.policy.waiting_count))
        elif self._flight is not None:
            self._cut(self._flight, changes=changes)

    def _schedule(self) -> Generator[Event, Any, None]:
        ask_again_s = NEVER_S
        while True:
            yield from self._sleep(ask_again_s)
            with self.gpu.request() as hold:
                yield hold
                ask_again_s = yield from self._busy_period()

    def _busy_period(self) -> Generator[Event, Any, float]:
        """Run steps until nothing can run; return when to ask again."""
        env = self.env
        while True:
            now_s = env.now
            plan = self.policy.plan(now_s)
            if isinstance(plan, Plan):
                if plan.admitted:
                    self._recorder.planned(plan, now_s)
                ends_s = self._ends.of_single(plan, now_s)
                if ends_s and clock.leap(env, ends_s[0]):  # nothing else happens meanwhile: the shortest way
                    self._commit(plan, now_s, now_s, ends_s)
                elif (yield from self._run(plan, now_s, ends_s)):
                    return NEVER_S
            elif self._last is not None:
                yield from self._land()
            else:
                return NEVER_S if plan is None else plan.time_s
            if clock.shared(env):
                yield clock.at(env, env.now, PLAN)

    def _run(self, plan: Plan, planned_s: float, ends_s: list[float]) -> Generator[Event, Any, bool]:
        """Run `plan`, once what flies has landed; return whether it closes a circle that nothing breaks."""
        circle = bool(plan.preempted) and self._in_a_circle(plan)
        if self._last is not None:
            self._next = plan
            yield from self._land()
            self._next = None
        if plan.preempted and not (plan.batch.decode_seqs or plan.batch.prefill):
            self._recorder.lost(plan)
        else:
            yield from self._fly(plan, planned_s, ends_s)
        return circle and (yield from self._gives_up())

    def _fly(self, plan: Plan, planned_s: float, ends_s: list[float]) -> Generator[Event, Any, None]:
        """Start `plan` now, with as many repeats as nothing speaks against; wait until the next is to be planned."""
        env, depth = self.env, self.policy.depth
        repeat = 0 if ends_s else plan.repeat if self._fast else 1
        self._flight = flight = Flight(plan, planned_s, env.now, ends_s, repeat, depth)
        if self._next_waiting:
            flight.waiting, self._next_waiting = self._next_waiting, []
        while True:
            if flight.more:
                self._ends.go_on(flight)
            if flight.n >= depth:
                then_s = flight.ends_s[flight.n - depth]
                if not clock.leap(env, then_s):
                    flight.event = clock.at(env, then_s, STEP_END)
                    yield flight.event
            if not flight.more:
                break
        self._flight = None
        self._settle(flight)
        if depth > 1:
            self._last = flight
        else:
            self._commit(plan, planned_s, flight.start_s, flight.ends_s, flight.rows)

    def _gives_up(self) -> Generator[Event, Any, bool]:
        """Wait for what still runs; return whether even then nobody has come or got a token."""
        if self._last is not None:
            yield from self._land()
        return bool(self._states)

    def _land(self) -> Generator[Event, Any, None]:
        """Wait for the end of the last step of what flies and commit it. Precondition: something flies."""
        flight = self._last
        if flight is not None:
            if flight.end_s > self.env.now and not clock.leap(self.env, flight.end_s):
                yield clock.at(self.env, flight.end_s, STEP_END)
            self._last = None
            self._commit(flight.plan, flight.planned_at_s, flight.start_s, flight.ends_s, flight.rows)

    def _cut(self, flight: Flight, *, changes: bool) -> None:
        step = flight.first_to_see(self.env.now)
        if not changes:
            flight.waiting.append((step, self.policy.waiting_count))
            return
        flight.more = 0
        if step < flight.n and flight.event is not None:
            flight.n = step
            flight.event = clock.move(flight.event, flight.planned_s(step), STEP_END)

    def _settle(self, flight: Flight) -> None:
        """Take what the repeats need, now that it is known how many there are; keep their rows for the commit."""
        plan, policy, n = flight.plan, self.policy, flight.n
        if len(flight.ends_s) > n:
            del flight.ends_s[n:]
        taken = self._settle_by_queue(flight) if flight.waiting else 1
        if n > taken:
            policy.take(plan, n - taken)
        for job in self._leaving:
            if policy.holds_seat(job):
                policy.withdraw(plan, job)

    def _settle_by_queue(self, flight: Flight) -> int:
        """Take what the repeats need up to the last change of the queue; return how many steps that are."""
        plan, policy, ends_s = flight.plan, self.policy, flight.ends_s
        past, start_s = 0, flight.start_s
        waiting, used = plan.waiting, plan.blocks_used
        for step, then_waiting in flight.waiting:
            if step >= flight.n:
                break
            if step > past:
                flight.rows.append(RowPart(past, start_s, ends_s[past:step], waiting, used))
                policy.take(plan, step - past)
                past, start_s, used = step, ends_s[step - 1], policy.kv.used
            waiting = then_waiting
        flight.rows.append(RowPart(past, start_s, ends_s[past:], waiting, used))
        return past + 1

    def _commit(
        self, plan: Plan, planned_s: float, start_s: float, ends_s: list[float], rows: Sequence[RowPart] = ()
    ) -> None:
        """Deliver steps that have ended; `rows`: how they look in the steps table, if not all alike."""
        recorder = self._recorder
        self.policy.commit(plan)
        recorder.ran(plan, start_s, ends_s, rows)
        if self._states and (plan.ticking or plan.first):
            self._states.clear()
        if self._observer is not None:
            self._observer(SeenStep(plan, planned_s, start_s, ends_s[-1], self.policy.kv.free))
        served = self._part(plan, ends_s[-1]) if plan.finishing else ()
        if self._leaving:
            for job in [job for job in self._leaving if not self.policy.holds_seat(job)]:
                self._let_go(job)
        if self._check:
            self.policy.check()
        for job in served:
            self._on_finish(job)

    def _part(self, plan: Plan, now_s: float) -> list[Job]:
        """Record who leaves with a plan; return those who leave with their whole answer, their clients not gone."""
        served = []
        for job in plan.finishing:
            if self._leaving and job in self._leaving:
                del self._leaving[job]
                self._recorder.timed_out(job, now_s)
            else:
                self._recorder.finished(job, now_s)
                served.append(job)
        return served

    def _let_go(self, job: Job) -> None:
        del self._leaving[job]
        self.policy.cancel(job)
        self._recorder.timed_out(job, self.env.now)

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
            clock.put(self._idle, time_s, PLAN)
        else:
            self._idle = clock.move(self._idle, time_s, PLAN)
        self._wake_s = time_s

    def _in_a_circle(self, plan: Plan) -> bool:
        """Whether the state at a preempting step has been seen since the last token or arrival: a livelock."""
        state = self.policy.state()
        if state in self._states:
            return True
        self._states.add(state)
        return False
