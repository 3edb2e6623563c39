"""The lives of replicas: they start, fail and come back, drain, and the router learns of it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

import simpy

from simqueue.routing import FleetEvent, RandomFailures, Recovery
from simqueue.simulation import clock
from simqueue.simulation.clock import Order
from simqueue.simulation.columns import Columns
from simqueue.simulation.fleet import Fleet
from simqueue.simulation.fleet_rules import FleetRules
from simqueue.simulation.member import Member, State
from simqueue.simulation.watching import stand_by, watch

PATIENCE: Final = 20
LEAST_PATIENCE: Final = 1000
"""So many changes, and so many per replica, in a row that help no request end a run: others would not either."""


class Lives:
    """Lets replicas start, fail, come back and drain.

    Parameters
    ----------
    env : simpy.Environment
    fleet : Fleet
    rules : FleetRules

    Attributes
    ----------
    rows : Columns
        time_s, replica, state: each change, in order.
    """

    def __init__(self, env: simpy.Environment, fleet: Fleet, rules: FleetRules) -> None:
        self.rows = Columns(time_s="d", replica="q", state="o")
        self._env = env
        self._fleet = fleet
        self._health = Health(env, fleet, rules.recovery)
        self._failures = rules.failures
        self._hope = Hope(fleet)
        self._random = [rules.random(f"failures.{member.number}") for member in fleet.members]
        self._times = [0] * len(fleet.members)
        """How often each replica began to run, or had its repair called off; what was meant for earlier is off."""
        fleet.on_left = self._left
        late = {event.replica for event in reversed(rules.events) if event.kind == "start"}
        first = {event.replica: event.kind for event in reversed(rules.events)}
        for member in fleet.members:
            if member.number in late and first[member.number] == "start":
                self._note(member, State.ABSENT)
            else:
                self._begin(member)
        for event in rules.events:
            self._at(event.at_s, event.replica, partial(self._happen, event))

    def _happen(self, event: FleetEvent) -> None:
        member = self._fleet.members[event.replica]
        if event.kind == "fail":
            self._fail(member, event.repair_s)
        elif event.kind == "drain":
            self._drain(member, event.deadline_s)
        elif member.state in (State.ABSENT, State.GONE, State.FAILED):
            self._begin(member)

    def _begin(self, member: Member) -> None:
        """Let a replica run from now on."""
        is_new = member.state is not State.FAILED
        member.close(clock.now(self._env))  # of one that goes at this very instant
        member.open()
        self._note(member, State.READY)
        self._fleet.join(member)
        self._health.is_up(member, at_once=is_new)
        self._times[member.number] += 1
        if self._failures is not None:
            self._draw_failure(member, self._failures, self._times[member.number])

    def _draw_failure(self, member: Member, failures: RandomFailures, time: int) -> None:
        """Draw when a replica fails next, and for how long."""
        random = self._random[member.number]
        fails_s = clock.now(self._env) + exponential(random, failures.mtbf_s)
        repair_s = exponential(random, failures.repair_s)

        def fail() -> None:
            if self._times[member.number] == time:
                self._fail(member, repair_s)

        watch(self._env, fails_s, clock.of_replica(Order.LIFE, member.number), fail)

    def _fail(self, member: Member, repair_s: float | None) -> None:
        """Let a replica fail; one that is down already is back at another time, or stays down."""
        if member.site is not None:
            was_draining = member.state is State.DRAINING
            self._note(member, State.GONE if was_draining else State.FAILED)
            self._health.is_down(member)
            self._fleet.fail(member)
        elif member.state is State.FAILED:
            self._times[member.number] += 1  # the repair that was meant is off
        if member.state is State.FAILED and repair_s is not None:
            self._later(member, repair_s, lambda: self._begin(member))

    def _drain(self, member: Member, deadline_s: float | None) -> None:
        """Send a replica nothing more; it goes when what it has has ended, or at the deadline."""
        if member.state is State.FAILED:
            self._note(member, State.GONE)
            self._fleet.drop(member)
        if member.state is not State.READY:
            return
        self._note(member, State.DRAINING)
        self._fleet.drop(member)
        self._left(member)
        if member.jobs and deadline_s is not None:
            self._later(member, deadline_s, lambda: self._fail(member, None))

    def _later(self, member: Member, delay_s: float, act: Callable[[], None]) -> None:
        """Call `act` after a time, unless the replica's life has taken another course by then."""
        time, state = self._times[member.number], member.state

        def happen() -> None:
            if self._times[member.number] == time and member.state is state:
                act()

        self._at(clock.now(self._env) + delay_s, member.number, happen)

    def _at(self, time_s: float, number: int, act: Callable[[], None]) -> None:
        stand_by(self._env, time_s, clock.of_replica(Order.LIFE, number), act, self._hope)

    def _left(self, member: Member) -> None:
        """Let a replica that drains go when it has nothing left, once what happens now has happened."""
        if member.state is not State.DRAINING or member.jobs:
            return
        until_s = None if member.site is None else member.site.replica.lets_go_s()
        if until_s is not None and until_s > clock.now(self._env):
            self._at(until_s, member.number, partial(self._left, member))
        else:
            self._note(member, State.GONE)
            goes = clock.at(self._env, clock.now(self._env), clock.of_replica(Order.LIFE, member.number))
            goes.callbacks.append(lambda _: self._go(member))

    def _go(self, member: Member) -> None:
        if member.state is State.GONE:
            member.close(clock.now(self._env))

    def _note(self, member: Member, state: State) -> None:
        now_s = clock.now(self._env)
        member.state = state
        self.rows.append((now_s, member.number, state.value))
        self._hope.changes += 1
        if self._fleet.log.inside:
            self._fleet.last_event_s = now_s


class Hope:
    """Requests that a change in the life of a replica could yet help: none after many changes that helped no request.

    Parameters
    ----------
    fleet : Fleet

    Attributes
    ----------
    changes : int
        Changes so far.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.changes = 0
        self._fleet = fleet
        self._seen = (-1, 0)
        """What had happened to requests when something did last, and the changes up to then."""
        self._most = LEAST_PATIENCE + PATIENCE * len(fleet.members)

    def __len__(self) -> int:
        inside = len(self._fleet.log.inside)
        if self._fleet.progress != self._seen[0]:
            self._seen = (self._fleet.progress, self.changes)
        return inside if self.changes - self._seen[1] <= self._most else 0


class Health:
    """What the router knows of the health of replicas: by checks from time to time, and by a circuit breaker.

    A check that fails is known after its timeout. Checks are at multiples of their period, so that when the router
    learns something is computed when it happens.
    """

    def __init__(self, env: simpy.Environment, fleet: Fleet, recovery: Recovery) -> None:
        self._env, self._fleet, self._recovery = env, fleet, recovery
        self._is_up = {member.number: False for member in fleet.members}
        """By the checks."""
        self._news = dict.fromkeys(self._is_up, 0)
        """Counts what happened to each replica: news that is overtaken is dropped."""
        self._breakers = {member.number: Breaker(recovery) for member in fleet.members}
        if recovery.breaker_failures is not None:
            fleet.on_attempt = self._attempted

    def is_up(self, member: Member, *, at_once: bool) -> None:
        """Note that a replica runs; a new one is ready when it joins, one that is back after enough checks."""
        every_s = self._recovery.check_every_s
        self._news[member.number] += 1
        if at_once or every_s is None:
            self._learn(member, is_up=True)
        elif not self._is_up[member.number]:
            first_s = _next_multiple(clock.now(self._env), every_s)
            self._learn_at(member, first_s + (self._recovery.check_successes - 1) * every_s, is_up=True)

    def is_down(self, member: Member) -> None:
        """Note that a replica does not run."""
        every_s = self._recovery.check_every_s
        self._news[member.number] += 1
        if every_s is None:
            self._learn(member, is_up=False)
        elif self._is_up[member.number]:
            first_s = _next_multiple(clock.now(self._env), every_s)
            known_s = first_s + (self._recovery.check_failures - 1) * every_s + self._recovery.check_timeout_s
            self._learn_at(member, known_s, is_up=False)

    def _learn_at(self, member: Member, time_s: float, *, is_up: bool) -> None:
        news = self._news[member.number]

        def learn() -> None:
            if self._news[member.number] == news:
                self._learn(member, is_up=is_up)

        self._at(time_s, member, learn)

    def _at(self, time_s: float, member: Member, act: Callable[[], None]) -> None:
        stand_by(self._env, time_s, clock.of_replica(Order.LIFE, member.number), act, self._fleet.log.inside)

    def _learn(self, member: Member, *, is_up: bool) -> None:
        self._is_up[member.number] = is_up
        self._tell(member)

    def _tell(self, member: Member) -> None:
        if member in self._fleet.views:
            breaker = self._breakers[member.number]
            self._fleet.know(member, healthy=self._is_up[member.number] and not breaker.is_open)

    def _attempted(self, member: Member, went_well: bool) -> None:
        breaker = self._breakers[member.number]
        now_s = clock.now(self._env)
        if breaker.note(now_s, went_well=went_well):
            opened = breaker.opened
            self._at(now_s + self._recovery.breaker_open_s, member, partial(self._half_open, member, opened))
        self._tell(member)

    def _half_open(self, member: Member, opened: int) -> None:
        breaker = self._breakers[member.number]
        if breaker.opened == opened:
            breaker.try_again()
            self._tell(member)


class Breaker:
    """A circuit breaker: closed, open after failures in a row, half open after a time until enough answers.

    Attributes
    ----------
    is_open : bool
    opened : int
        How often it has opened.
    """

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self._failed_s: deque[float] = deque()
        self._successes: int | None = None
        """Answers since it is half open; None: it is not."""
        self.is_open = False
        self.opened = 0

    def note(self, now_s: float, *, went_well: bool) -> bool:
        """Note an attempt; return whether the breaker opens now."""
        limit = self._recovery.breaker_failures
        if limit is None or self.is_open:
            return False
        if went_well:
            self._failed_s.clear()
            if self._successes is not None:
                self._successes += 1
                if self._successes >= self._recovery.breaker_successes:
                    self._successes = None
            return False
        failed = self._failed_s
        failed.append(now_s)
        while failed[0] <= now_s - self._recovery.breaker_window_s:
            failed.popleft()
        if self._successes is None and len(failed) < limit:
            return False
        self.is_open, self._successes = True, None
        self.opened += 1
        failed.clear()
        return True

    def try_again(self) -> None:
        """Let requests pass again, to see."""
        self.is_open, self._successes = False, 0


def exponential(random: Random, mean: float) -> float:
    """Draw from an exponential distribution."""
    return -mean * math.log(1.0 - random.random())


def _next_multiple(now_s: float, every_s: float) -> float:
    """Return the first multiple of a period after now."""
    return (math.floor(now_s / every_s) + 1) * every_s
