"""A replica of a fleet as its router sees it, and its life: ready, draining, failed, gone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum

import simpy

from simqueue.errors import RunError
from simqueue.request import Job, Request
from simqueue.routing import Signal
from simqueue.schedulers.base import Policy
from simqueue.simulation import clock
from simqueue.simulation.fleet_rules import Part
from simqueue.simulation.replica_log import ReplicaLog
from simqueue.simulation.site import Site


class State(StrEnum):
    """What a replica is doing."""

    ABSENT = "absent"
    """It has not started yet."""
    READY = "ready"
    DRAINING = "draining"
    """It gets no new requests, and is gone when those that it has have ended."""
    FAILED = "failed"
    GONE = "gone"


class Reading:
    """The values of one signal as the router gets them: some time after the engine was looked at."""

    def __init__(self) -> None:
        self._coming: deque[tuple[float, float, float]] = deque()
        self._value = 0.0
        self.seen_s = 0.0

    def add(self, seen_s: float, value: float, known_s: float) -> None:
        """Take a value that the router will know at `known_s`."""
        self.value(seen_s)
        self._coming.append((known_s, seen_s, value))

    def value(self, now_s: float) -> float:
        """Return what the router knows at `now_s`; 0 before the first look."""
        coming = self._coming
        while coming and coming[0][0] <= now_s:
            _, self.seen_s, self._value = coming.popleft()
        return self._value


class Undeclared(Reading):
    """A signal with an age that the router does not declare, so that the engine is not looked at for it."""

    def __init__(self, signal: Signal) -> None:
        super().__init__()
        self._signal = signal

    def value(self, now_s: float) -> float:
        """Raise `RunError`: the router would get the present instead of what it could know."""
        raise RunError(
            f"the router reads {self._signal}, which has an age: its `reads` must have Signal.{self._signal.name}"
        )


class Member:
    """One replica of a fleet; the router sees it as a `simqueue.routing.View`.

    Parameters
    ----------
    env : simpy.Environment
    number : int
    part : Part
    log : ReplicaLog
    open_site : callable
        Policy -> a site with it.

    Attributes
    ----------
    state : State
    front_end : FrontEndTimes or None
    site : Site or None
        None while it does not run.
    jobs : dict of Job to None
        Requests that were sent to it and have not ended, in the order in which they were sent.
    policies : list of Policy
        Each policy that it ran: a new one after each failure.
    lost_steps_s : list of float
        Times of steps that failures cut off.
    readings : dict of Signal to Reading
        Signals that have an age.
    """

    def __init__(
        self,
        env: simpy.Environment,
        number: int,
        part: Part,
        log: ReplicaLog,
        open_site: Callable[[Policy], Site],
    ) -> None:
        self._env = env
        self._make_policy, self._open_site = part.make_policy, open_site
        self.number, self.name, self.group, self.weight = number, part.name, part.group, part.weight
        self.front_end = part.front_end
        self.log = log
        self.state = State.ABSENT
        self.site: Site | None = None
        self.jobs: dict[Job, None] = {}
        self.policies: list[Policy] = []
        self.lost_steps_s: list[float] = []
        self.readings: dict[Signal, Reading] = {}
        self.healthy = False
        self.in_flight = self.in_flight_prompt_tokens = self.in_flight_tokens = 0
        first = self._make_policy()
        batching = first.batching()
        self.block_size = first.kv.block_size
        self.kv_tokens = first.kv.total * first.kv.block_size
        self.max_num_batched_tokens = None if batching is None else batching.max_num_batched_tokens
        self._next_policy: Policy | None = first

    # -- its life ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to run, with an empty KV cache."""
        policy = self._next_policy or self._make_policy()
        self._next_policy = None
        self.policies.append(policy)
        self.site = self._open_site(policy)

    def close(self, now_s: float, jobs: Sequence[Job] = ()) -> None:
        """Stop at once: the steps that have ended are logged, and `jobs`, which it has, lose what is under way."""
        if self.site is not None:
            lost_s = self.site.stop(now_s, jobs)
            if lost_s is not None:
                self.lost_steps_s.append(lost_s)
            self.site = None

    def took(self, job: Job) -> None:
        """Count a request that is sent to it."""
        self.jobs[job] = None
        self._count(job.request, 1)

    def left(self, job: Job) -> None:
        """Count a request that has left it."""
        del self.jobs[job]
        self._count(job.request, -1)

    def _count(self, request: Request, sign: int) -> None:
        prompt = sign * request.prompt_tokens
        self.in_flight += sign
        self.in_flight_prompt_tokens += prompt
        self.in_flight_tokens += prompt + sign * request.output_tokens

    # -- what a router reads -------------------------------------------------------------------------------------

    @property
    def free_seats(self) -> int:
        """Requests that could run at once."""
        if self.site is None:
            return 0
        policy = self.site.policy
        # those on their way or in its front end will need a seat too
        without_seat = max(policy.waiting_count, self.in_flight - policy.running_count)
        return max(0, policy.free_seats - without_seat)

    @property
    def running(self) -> int:
        """Requests that hold a seat."""
        reading = self.readings.get(Signal.RUNNING) if self.readings else None
        if reading is not None:
            return int(reading.value(clock.now(self._env)))
        return 0 if self.site is None else self.site.policy.running_count

    @property
    def waiting(self) -> int:
        """Requests in the queue of the engine."""
        reading = self.readings.get(Signal.WAITING) if self.readings else None
        if reading is not None:
            return int(reading.value(clock.now(self._env)))
        return 0 if self.site is None else self.site.policy.waiting_count

    @property
    def kv_used(self) -> float:
        """Share of the KV pool in use."""
        return self._signal(Signal.KV_USED)

    @property
    def tokens(self) -> int:
        """Prompt and output tokens of the requests that run or wait, as far as they exist."""
        return int(self._signal(Signal.TOKENS))

    @property
    def seen_s(self) -> float:
        """When the engine was last looked at."""
        now_s = clock.now(self._env)
        looked_at = [reading for reading in self.readings.values() if not isinstance(reading, Undeclared)]
        for reading in looked_at:
            reading.value(now_s)
        return min((reading.seen_s for reading in looked_at), default=now_s)

    def cached_tokens(self, request: Request) -> int:
        """Return how many tokens of the prompt its prefix cache has now."""
        if self.site is None:
            return 0
        self.site.replica.catch_up()
        return self.site.policy.kv.cached_tokens(request)

    def _signal(self, signal: Signal) -> float:
        reading = self.readings.get(signal)
        return self.live(signal) if reading is None else reading.value(clock.now(self._env))

    def live(self, signal: Signal) -> float:
        """Return a signal as it is now."""
        site = self.site
        if site is None:
            return 0.0
        policy = site.policy
        if signal is Signal.RUNNING:
            return policy.running_count
        if signal is Signal.WAITING:
            return policy.waiting_count
        site.replica.catch_up()
        if signal is Signal.KV_USED:
            return policy.kv.used / policy.kv.total
        return site.tokens(self.jobs)
