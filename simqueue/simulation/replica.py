"""A replica: one scheduler process that holds one GPU while there is work.

The scheduler process is always in one of four states:

========  ===========================================================================================================
IDLE      nothing runs; the process sleeps until a request arrives, or until the policy wants to be asked again
PLANNING  between two steps, at one instant: a step has ended (or started, with two steps in flight), the next one is
          to be planned after everything else that happens at this instant
RUNNING   a plan is in flight, possibly repeated; an event that invalidates it shortens it
DRAINING  the last step in flight is ending; the next plan, if there is one, starts after it (two steps in flight)
========  ===========================================================================================================
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, Final

import simpy
from simpy.events import Event

from simqueue.errors import RunError
from simqueue.request import Job, Status
from simqueue.schedulers.base import Later, Plan, Policy
from simqueue.schedulers.declarations import undeclared_rules
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.simulation.ends import StepEnds
from simqueue.simulation.inflight import InFlight, RowPart
from simqueue.simulation.options import NEVER_S, Observer, RunOptions, SeenStep
from simqueue.simulation.progress import Progress
from simqueue.simulation.replica_log import ReplicaLog
from simqueue.steptime.base import StepTime

FINISHED, REJECTED = Status.FINISHED, Status.REJECTED
IDLE: Final = 0
PLANNING: Final = 1
RUNNING: Final = 2
DRAINING: Final = 3


class Replica:
    """Plans, runs and commits steps for as long as there is something to run.

    Parameters
    ----------
    env : simpy.Environment
    policy, step_time, recorder : the parts it connects
    options : RunOptions
        Steps are folded only if all rules of the policy are declared as steady.
    on_finish : callable
        Called with each request that leaves with all its tokens, or with an error, and how it ended.
    observer : callable, optional
        Called with each step, if steps are not folded.

    Attributes
    ----------
    undeclared : list of str
        Rules of the policy that keep its steps from being folded.
    """

    def __init__(
        self,
        env: simpy.Environment,
        policy: Policy,
        step_time: StepTime,
        recorder: ReplicaLog,
        options: RunOptions,
        on_finish: Callable[[Job, Status], None],
        observer: Observer | None = None,
    ) -> None:
        if policy.depth not in (1, 2):
            raise RunError(f"{type(policy).__name__}: depth = {policy.depth}: must be 1 or 2")
        self.env = env
        self.policy = policy
        self._plan: Callable[[float], object] = policy.plan  # untyped: a wrong answer is an error with its class
        self.gpu = simpy.Resource(env, capacity=1)
        self.undeclared = undeclared_rules(policy) if options.fast else []
        if self.undeclared:
            options = replace(options, fast=False)
        self._recorder = recorder
        self._step_end = clock.of_replica(Order.STEP_END, recorder.number)
        self._planning = clock.of_replica(Order.PLAN, recorder.number)
        self._fast = options.fast
        self._check = options.check
        self._ends = StepEnds(env, step_time, options, one_at_a_time=policy.depth == 1)
        self._on_finish = on_finish
        self._observer = observer
        self._state = IDLE
        self._in_flight: InFlight | None = None
        """The plan that is RUNNING or DRAINING."""
        self._next: Plan | None = None
        """The plan that starts when DRAINING ends."""
        self._next_waiting: list[tuple[int, int]] = []
        """Lengths of the queue that the first repeat of the next plan sees."""
        self._cancelled: dict[Job, None] = {}
        """Cancelled requests that are part of a plan in flight."""
        self._thinned: dict[Plan, None] = {}
        """Plans in flight that a request has left, or will leave, before they start."""
        self._wake: Event | None = None
        self._wake_s = NEVER_S
        self._progress = Progress(policy, recorder)
        self._process = env.process(self._schedule())

    # -- what happens from outside -------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Queue a request that has arrived now."""
        self._changed(invalidates=self.policy.add(job))

    def cancel(self, job: Job) -> list[Job]:
        """Cancel `job` now; return the requests that leave with all their tokens because of it.

        A request that is part of a step in flight leaves when the step under way ends: that is when a server can let it
        go, and the time that is recorded. Its token of that step is not delivered. Precondition: it was submitted and
        has not left.
        """
        running = self._in_flight
        if self._state == RUNNING and running is not None:
            # what runs is known from here on, so that the request can stop counting now
            self._shorten(running)
            running.split(self.policy, clock.now(self.env))
            running.take_all(self.policy)
            if running.end_s == clock.now(self.env) and self.policy.depth == 1:
                self._end(running)  # a step ends before the timeouts of its instant
        self._cancelled[job] = None
        uncommitted = self._uncommitted()
        self._thinned.update(dict.fromkeys(uncommitted[1:]))
        served = self._leave(self.policy.cancel(job, uncommitted), clock.now(self.env))
        self._changed(invalidates=True)
        return served

    def stop(self) -> float | None:
        """Fail: log the steps that have ended, and let nothing happen any more; return how long the next one had run.

        None if no step was under way.
        The policy is left as it is, and is of no further use.
        """
        self.catch_up()
        target = self._process.target
        if target is not None:
            target.callbacks = []
        self._process._generator.close()
        running, self._in_flight, self._next = self._in_flight, None, None
        if running is None or running.ended:
            return None
        now_s = clock.now(self.env)
        ended = bisect_right(running.ends_s, now_s, 0, running.n)
        began_s = running.ends_s[ended - 1] if ended else running.start_s
        if ended:
            self._recorder.ran(running.plan, running.start_s, running.ends_s[:ended], running.first_rows(ended))
        return now_s - began_s if running.steps_taken > ended else None

    def ticks_ended(self) -> int:
        """Return how many tokens of each decoding request the steps in flight have made that are not logged yet."""
        running = self._in_flight
        if running is None or not running.plan.ticking:
            return 0
        return bisect_right(running.ends_s, clock.now(self.env), 0, running.n)

    def catch_up(self) -> None:
        """Let the policy take what was planned before this instant, so that it can be looked at; a fold goes on."""
        running = self._in_flight
        if self._state == RUNNING and running is not None and not running.taken:
            running.take(self.policy, running.planned_before(clock.now(self.env)))

    def cancelled(self) -> list[Job]:
        """Return the cancelled requests that run until the end of the step in flight."""
        return list(self._cancelled)

    def lets_go_s(self) -> float | None:
        """Return when the step ends in which cancelled requests still run; None if there are none."""
        return self._in_flight.end_s if self._cancelled and self._in_flight is not None else None

    def step_began_s(self) -> float | None:
        """Return when the step in flight began; None if nothing runs."""
        return None if self._in_flight is None else self._in_flight.last_start_s

    def _uncommitted(self) -> list[Plan]:
        running = self._in_flight
        tail = None if running is None or running.tail is None else running.tail.plan
        plans = (None if running is None else running.plan, tail, self._next)
        return [plan for plan in plans if plan is not None]

    def _changed(self, *, invalidates: bool) -> None:
        """React to a change of the queue; `invalidates`: whether a repeated plan may no longer hold."""
        self._progress.states.clear()
        self._progress.wakes = 0
        if self._state == IDLE:
            self._wake_at(clock.now(self.env))
        elif self._next is not None:
            # not started yet: its repeats are planned when it starts, or later
            if invalidates:
                self._next.repeat = 1
            self._next_waiting.append((1, self.policy.waiting_count))
        elif self._state == RUNNING and self._in_flight is not None:
            if invalidates:
                self._shorten(self._in_flight)
            else:
                self._in_flight.note_waiting(self.policy.waiting_count, clock.now(self.env))

    # -- the scheduler process -----------------------------------------------------------------------------------

    def _schedule(self) -> Generator[Event, Any, None]:
        ask_again_s = NEVER_S
        while True:
            yield from self._sleep(ask_again_s)
            with self.gpu.request() as hold:
                yield hold
                woke_s = clock.now(self.env)
                ask_again_s = yield from self._busy_period()
            self._progress.woke(woke_s, clock.now(self.env))

    def _busy_period(self) -> Generator[Event, Any, float]:
        """Run steps until nothing can run; return when to ask the policy again."""
        env = self.env
        before: object = None
        while True:
            now_s = clock.now(env)
            plan = self._plan(now_s)
            if isinstance(plan, Plan):
                if plan is before:
                    raise self._progress.failure(f"plan gives the plan before again at {now_s:g} s: must be a new one")
                before = plan
                if plan.failed:
                    self._fail(plan, now_s)
                if plan.admitted:
                    self._recorder.planned(plan, now_s)
                ends_s = self._ends.of_single(plan, now_s)
                if ends_s and clock.leap(env, ends_s[0]):  # nothing else happens before it ends: the shortest way
                    self._commit(plan, now_s, now_s, ends_s)
                elif (yield from self._run(plan, now_s, ends_s)):
                    return NEVER_S
            elif self._in_flight is not None:
                yield from self._drain(self._in_flight)
            else:
                return NEVER_S if plan is None else self._ask_again_s(plan)
            if clock.shared(env):
                yield clock.at(env, clock.now(env), self._planning)

    def _ask_again_s(self, answer: object) -> float:
        """Return when to ask the policy again; its answer is checked."""
        if not isinstance(answer, Later) or answer.time_s <= clock.now(self.env):
            must = "must be a Plan, None, or Later with a later time"
            raise self._progress.failure(f"plan gives {answer!r} at {clock.now(self.env):g} s: {must}")
        return answer.time_s

    def _run(self, plan: Plan, planned_s: float, ends_s: list[float]) -> Generator[Event, Any, bool]:
        """Run `plan` after the steps in flight have ended; return whether this is a livelock."""
        seen_before = bool(plan.preempted) and self._progress.seen_before()
        if self._in_flight is not None:
            self._next = plan
            yield from self._drain(self._in_flight)
            self._next = None
        if (plan.preempted or plan.failed) and not (plan.batch.decode_seqs or plan.batch.prefill):
            self._thinned.pop(plan, None)
            self._recorder.without_steps(plan)
            self._progress.gave_no_token(plan, clock.now(self.env))
            self.policy.commit(plan)
            self._leave(plan.finishing, clock.now(self.env))
        else:
            yield from self._run_steps(plan, planned_s, ends_s)
        return seen_before and (yield from self._is_livelock())

    def _run_steps(self, plan: Plan, planned_s: float, ends_s: list[float]) -> Generator[Event, Any, None]:
        """Start `plan` now, with as many repeats as are allowed; wait until the next plan is to be made."""
        env, depth = self.env, self.policy.depth
        repeat = 0 if ends_s else plan.repeat if self._fast else 1
        self._progress.check_repeat(repeat)
        self._in_flight = running = InFlight(plan, planned_s, clock.now(env), ends_s, repeat, depth)
        self._state = RUNNING
        if self._next_waiting:
            running.waiting, self._next_waiting = self._next_waiting, []
        while True:
            if running.more:
                self._ends.go_on(running)
            if running.n >= depth:
                then_s = running.ends_s[running.n - depth]
                if not clock.leap(env, then_s):
                    running.event = clock.at(env, then_s, self._step_end)
                    yield running.event
            if not running.more:
                break
        running.take_all(self.policy)
        self._state = PLANNING
        if not running.ended and (depth == 1 or running.tail is not None):
            self._end(running)

    def _end(self, running: InFlight) -> None:
        """Commit what was in flight and has ended."""
        running.ended = True
        self._state = PLANNING
        self._in_flight = running.tail
        self._commit(running.plan, running.planned_at_s, running.start_s, running.ends_s, running.rows)

    def _drain(self, running: InFlight) -> Generator[Event, Any, None]:
        """Wait for the end of the last step in flight and commit it."""
        self._state = DRAINING
        if running.end_s > clock.now(self.env) and not clock.leap(self.env, running.end_s):
            yield clock.at(self.env, running.end_s, self._step_end)
        self._end(running)

    def _shorten(self, running: InFlight) -> None:
        """Let a plan in flight end before the first step that sees a change of this instant.

        Steps that are planned before they see the change run as they are. The ends of later repeats may be computed
        already; they are dropped when the plan ends. After the first call `n` is final.
        """
        running.more = 0
        step = running.first_to_see(clock.now(self.env))
        if step < running.n and running.event is not None:
            running.n = step
            running.event = clock.move(running.event, running.planned_s(step), self._step_end)

    # -- the end of steps ----------------------------------------------------------------------------------------

    def _commit(
        self, plan: Plan, planned_s: float, start_s: float, ends_s: list[float], rows: Sequence[RowPart] = ()
    ) -> None:
        """Deliver steps that have ended; `rows`: how they look in the steps table, if they are not all alike."""
        gone: list[Job] | None = None
        if self._cancelled or self._thinned:
            gone = [job for job in plan.finishing if job in self._cancelled]
            self._thinned.pop(plan, None)
        self.policy.commit(plan)
        self._recorder.ran(plan, start_s, ends_s, rows, gone)
        if plan.ticking or plan.first:
            self._progress.fruitless = 0
            self._progress.states.clear()
        else:
            self._progress.gave_no_token(plan, ends_s[-1])
        if self._observer is not None:
            self._observer(SeenStep(plan, planned_s, start_s, ends_s[-1], self.policy.kv.free))
        served = self._leave(plan.finishing, ends_s[-1]) if plan.finishing else ()
        if self._check:
            self.policy.check()
        for job in served:
            self._on_finish(job, FINISHED)

    def _fail(self, plan: Plan, now_s: float) -> None:
        """Record the requests that the policy ends with an error, and tell their clients."""
        for job, reason in plan.failed:
            self._recorder.failed(job, now_s, reason)
        for job, _ in plan.failed:
            self._on_finish(job, REJECTED)

    def _leave(self, leaving: Sequence[Job], now_s: float) -> list[Job]:
        """Record requests that leave now; return those with all their tokens that were not cancelled."""
        served = []
        for job in leaving:
            if self._cancelled and job in self._cancelled:
                del self._cancelled[job]
                self._recorder.timed_out(job, now_s)
            else:
                self._recorder.finished(job, now_s)
                served.append(job)
        return served

    # -- sleep and livelock --------------------------------------------------------------------------------------

    def _sleep(self, until_s: float) -> Generator[Event, Any, None]:
        self._state = IDLE
        self._wake = Event(self.env)
        self._wake_s = NEVER_S
        if until_s < NEVER_S:
            self._wake_at(until_s)
        yield self._wake
        self._state = PLANNING
        self._wake = None

    def _wake_at(self, time_s: float) -> None:
        if self._wake is None or time_s >= self._wake_s:
            return
        if self._wake_s == NEVER_S:
            clock.put(self._wake, time_s, self._planning)
        else:
            self._wake = clock.move(self._wake, time_s, self._planning)
        self._wake_s = time_s

    def _is_livelock(self) -> Generator[Event, Any, bool]:
        """Wait for the steps in flight; return whether no token was made and nothing changed from outside even then."""
        if self._in_flight is not None:
            yield from self._drain(self._in_flight)
        return bool(self._progress.states)
