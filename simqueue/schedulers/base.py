"""The contract of policies: who runs in the next step.

A policy is pure logic over its own queues and a KV cache. It never sees the simulation's clock or events. Planned
state and delivered state are apart: what `plan` and `take` decide holds at once for further plans, what `commit`
delivers gives seats and blocks back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.settings import Settings
from simqueue.steptime.base import Batch


@dataclass(slots=True, eq=False)
class Plan:
    """One step, decided; perhaps to be repeated with the same composition.

    Attributes
    ----------
    batch : Batch
        What the GPU runs, as sums (padded engines: padded numbers). Empty only if somebody was preempted.
    repeat : int
        In how many steps in a row, this one included, exactly this composition runs if nobody arrives, leaves or is
        called ready. 1 is always right.
    ticking : int
        Requests that get a token because they decode in this step (not because a prompt was completed).
    running, waiting : int
        Requests that hold a seat and that queue, when the step is planned.
    work : Batch
        What of `batch` serves somebody: without padding and idle slots.
    blocks_used : int
        Blocks in use once the step is planned.
    admitted : list of (Job, cached tokens)
    preempted : list of Job
        In order of preemption.
    first : list of Job
        Their prompt (or recomputed context) is complete: one token each at the end of the step.
    ended : list of Job
        Their last token comes with what has been taken of this plan; `take` adds to it.
    finishing : list of Job
        They leave when what has been taken is committed; the same list as `ended` where seats are given back at once.
    left_out : list of Job
        Decoding requests that get nothing in this step.
    members : list of (Job, tokens)
        Who runs, in the order of scheduling; filled in only for an observer.
    """

    batch: Batch
    repeat: int
    ticking: int
    running: int
    waiting: int
    work: Batch
    blocks_used: int
    admitted: list[tuple[Job, int]] = field(default_factory=list)
    preempted: list[Job] = field(default_factory=list)
    first: list[Job] = field(default_factory=list)
    ended: list[Job] = field(default_factory=list)
    finishing: list[Job] = field(default_factory=list)
    left_out: list[Job] = field(default_factory=list)
    members: Sequence[tuple[Job, int]] = ()


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing can run now, but ask again at `time_s` (a wave's timeout)."""

    time_s: float


@mypyc_attr(allow_interpreted_subclasses=True)
class Policy:
    """Who runs in the next step. Constructed as ``PolicyClass(settings, kv, door)``."""

    Settings: ClassVar[type[Settings]]
    """Scenario keys of this policy beside ``scheduler:``."""
    summary: ClassVar[str]
    """One line for ``simqueue list policies``."""
    pads: ClassVar[bool] = False
    """Whether `Plan.batch` holds padded rows, so that idle slots are worth reporting."""
    depth: int = 1
    """Steps in flight at one time: 1, or 2 if the next step is planned while one runs."""
    observed: bool = False
    """Whether `Plan.members` is filled in (for conformance and debugging)."""

    kv: KVCache

    @property
    @abstractmethod
    def waiting_count(self) -> int:
        """Requests in the queue now."""
        raise NotImplementedError

    @property
    @abstractmethod
    def free_seats(self) -> int:
        """Seats that the next plan may give to waiting requests."""
        raise NotImplementedError

    @abstractmethod
    def refusal(self, request: Request) -> str | None:
        """Return why `request` can never be served, or None. Changes nothing."""
        raise NotImplementedError

    @abstractmethod
    def add(self, job: Job) -> bool:
        """Take in a request that has arrived.

        Returns whether this may change a repeated plan that is under way (True is always right).
        """
        raise NotImplementedError

    @abstractmethod
    def holds_seat(self, job: Job) -> bool:
        """Return whether `job` runs (else it waits). Precondition: it was added and has not left."""
        raise NotImplementedError

    @abstractmethod
    def cancel(self, job: Job) -> bool:
        """Let `job` go whose client has gone, between two steps; its seat and blocks are free at once.

        Returns whether this may change a repeated plan that is under way. Precondition: no plan that it is part of
        is still to be committed.
        """
        raise NotImplementedError

    @abstractmethod
    def withdraw(self, plan: Plan, job: Job) -> None:
        """Let `job` go with the steps of `plan` that have been taken: it is added to ``plan.finishing``.

        Precondition: it holds a seat; all repeats of `plan` that run have been taken.
        """
        raise NotImplementedError

    @abstractmethod
    def plan(self, now_s: float) -> Plan | Later | None:
        """Decide the next step and take what it needs; None: nothing can run until something is added or committed.

        Precondition: at most ``depth - 1`` plans are not committed, and all repeats of theirs that run are taken.
        """
        raise NotImplementedError

    @abstractmethod
    def take(self, plan: Plan, n: int) -> None:
        """Take blocks and move counters for `n` more repeats of `plan`.

        Precondition: with all that was taken before, at most ``plan.repeat``.
        """
        raise NotImplementedError

    @abstractmethod
    def commit(self, plan: Plan) -> None:
        """Deliver what was taken of `plan`: seats and blocks of ``plan.finishing`` are given back, in list order."""
        raise NotImplementedError

    @abstractmethod
    def state(self) -> Hashable:
        """Return what decides the further course if nobody arrives and no token is made (to find livelocks)."""
        raise NotImplementedError

    @abstractmethod
    def members(self) -> list[Job]:
        """Return the requests that hold a seat, in order of admission (for checks only)."""
        raise NotImplementedError

    @abstractmethod
    def check(self) -> None:
        """Compare counters with a walk over all requests; raise `RunError` where they differ."""
        raise NotImplementedError
