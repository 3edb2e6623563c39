"""The contract of policies: which requests run in the next step.

A policy is pure logic over its own queue and a KV cache. It never sees the simulation's clock or events. Planned state
and delivered state are separate. What `plan` and `take` decide counts at once for further plans. What `commit` delivers
gives seats and blocks back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.settings import Settings
from simqueue.steptime.base import Batch


@dataclass(slots=True, eq=False)
class Plan:
    """One step as decided, possibly repeated with the same composition.

    Attributes
    ----------
    batch : Batch
        What the GPU runs, as sums (padded engines: padded numbers). Empty only if requests were preempted or failed.
    repeat : int
        In how many steps in a row, this one included, exactly this composition runs if no request arrives or is
        cancelled. 1 is always right.
    ticking : int
        Requests that get a token because they decode in this step (not because their prompt was completed).
    running, waiting : int
        Requests that hold a seat, and requests in the queue, when the step is planned.
    work : Batch
        `batch` without padding and idle slots.
    blocks_used : int
        Blocks in use after the step is planned.
    admitted : list of (Job, cached tokens)
    preempted : list of Job
        In order of preemption.
    first : list of Job
        Requests whose prompt (or recomputed context) is complete: one token each at the end of the step.
    ended : list of Job
        Requests whose last token comes with the steps taken of this plan; `Policy.take` adds to it.
    finishing : list of Job
        Requests that leave when the steps taken of this plan are committed: those of `ended` if seats are given back
        with the last token, and cancelled requests, which get no token of its last step.
    unseated : int
        Those of `preempted` of which nothing had been computed, so that nothing is lost.
    failed : list of (Job, reason)
        Requests that the policy ends with an error when the step is planned; they have left seat and pool.
    left_out : sequence of Job
        Decoding requests that get no token in this step.
    dropped : list of Job
        Decoding requests that the next plan preempted while this one ran: the last step taken gives them no token.
    members : list of (Job, tokens)
        The requests that run, in the order of scheduling; filled in only if the policy is observed.
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
    unseated: int = 0
    failed: list[tuple[Job, str]] = field(default_factory=list)
    left_out: Sequence[Job] = ()
    dropped: list[Job] = field(default_factory=list)
    members: Sequence[tuple[Job, int]] = ()


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing can run now, but ask again at `time_s` (a wave's timeout)."""

    time_s: float


@dataclass(frozen=True, slots=True)
class Batching:
    """How a policy batches, in the terms of the capacity law.

    Attributes
    ----------
    kind : {"static", "separate", "mixed", "chunked"}
        Padded waves; whole prompts in steps of their own; whole prompts in steps with decodes; prompts in chunks in
        steps with decodes.
    max_num_seqs : int
        Requests that run at one time.
    max_num_batched_tokens : int or None
        Token budget of a step; None: no limit.
    chunk_tokens : int or None
        Most prompt tokens per request and step; None: only the budget limits them.
    whole_context : bool
        Whether a request is admitted only if blocks for all its known tokens are free, though it runs in chunks.
    fills_waves : bool
        Whether a padded wave waits until it is full.
    sorts_waves : bool
        Whether padded waves are gathered in the order of lengths.
    """

    kind: Literal["static", "separate", "mixed", "chunked"]
    max_num_seqs: int
    max_num_batched_tokens: int | None = None
    chunk_tokens: int | None = None
    whole_context: bool = False
    fills_waves: bool = False
    sorts_waves: bool = False


@mypyc_attr(allow_interpreted_subclasses=True)
class Policy:
    """Decides which requests run in the next step. Constructed as ``PolicyClass(settings, kv, limits)``."""

    Settings: ClassVar[type[Settings]]
    """Scenario keys of this policy, besides ``scheduler``."""
    summary: ClassVar[str]
    """One line for ``simqueue list policies``."""
    steady_rules: ClassVar[tuple[str, ...]] = ()
    """Names of the rules that the class with this attribute defines and that are steady (see `declarations`)."""
    counts_idle_slots: ClassVar[bool] = False
    """Whether batches are padded, so that the share of idle slots is reported."""
    keeps_finished: ClassVar[bool] = False
    """Whether a request can keep its seat after its last token."""
    depth: int = 1
    """Steps in flight at one time: 1, or 2 if the next step is planned while one runs."""
    observed: bool = False
    """Whether `Plan.members` is filled in (for conformance and debugging)."""

    kv: KVCache

    # -- questions -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def waiting_count(self) -> int:
        """Requests in the queue now."""
        raise NotImplementedError

    @property
    def running_count(self) -> int:
        """Requests that hold a seat now. As `waiting_count` and `free_seats`, it does not change in repeated steps."""
        return len(self.members())

    @property
    @abstractmethod
    def free_seats(self) -> int:
        """Seats that no request holds (with padded waves: of the next wave, if none runs)."""
        raise NotImplementedError

    @abstractmethod
    def rejection(self, request: Request) -> str | None:
        """Return why `request` can never be served, or None. Changes nothing."""
        raise NotImplementedError

    def due_tokens(self, request: Request) -> int:
        """Return how many tokens are made for `request`: fewer than it asks for if the policy cuts its output.

        Precondition: it is not rejected. Changes nothing.
        """
        return request.output_tokens

    def batching(self) -> Batching | None:
        """Return how this policy batches, or None if no capacity law describes it.

        The answer counts only for the very class that gives it: a subclass that changes a rule has no capacity law
        unless it defines this method too.
        """
        return None

    def waits_for(self) -> str | None:
        """Return what the waiting requests wait for if nothing runs and none arrives, or None if no key can help."""
        return None

    def remarks(self) -> Sequence[str]:
        """Return what a reader of the results has to know about the run, one line each."""
        return ()

    # -- what happens --------------------------------------------------------------------------------------------

    @abstractmethod
    def add(self, job: Job) -> bool:
        """Queue a request that has arrived.

        Returns whether this can change a repeated plan in flight (True is always right).
        """
        raise NotImplementedError

    @abstractmethod
    def cancel(self, job: Job, uncommitted: Sequence[Plan]) -> list[Job]:
        """Stop counting `job` from the next plan on. If it runs, it leaves when the plan under way is committed.

        Parameters
        ----------
        job : Job
            A request that was added and has not left.
        uncommitted : sequence of Plan
            The plans that are still to be committed: the one under way, and with two steps in flight possibly the next
            one. All of their repeats that run have been taken.

        Returns
        -------
        list of Job
            The requests that leave at once: `job`, if it waits or no plan is in flight, and requests that have all
            their tokens and waited only for it. Empty if `job` was added to the ``finishing`` of the plan under way.
        """
        raise NotImplementedError

    @abstractmethod
    def plan(self, now_s: float) -> Plan | Later | None:
        """Decide the next step and take what it needs; None: nothing can run until a request arrives or a plan ends.

        Precondition: at most ``depth - 1`` plans are not committed, and all repeats of theirs that run are taken.
        """
        raise NotImplementedError

    @abstractmethod
    def take(self, plan: Plan, n: int) -> None:
        """Take blocks and move counters for `n` more repeats of `plan`.

        Precondition: with all repeats taken before, at most ``plan.repeat``.
        """
        raise NotImplementedError

    @abstractmethod
    def commit(self, plan: Plan) -> None:
        """Deliver the steps taken of `plan`: seats and blocks of ``plan.finishing`` are given back, in list order.

        Called once for each plan, in the order of planning.
        """
        raise NotImplementedError

    # -- for checks ----------------------------------------------------------------------------------------------

    @abstractmethod
    def state(self) -> Hashable:
        """Return what decides all further plans if no request arrives and no token is made (to find livelocks)."""
        raise NotImplementedError

    @abstractmethod
    def members(self) -> list[Job]:
        """Return the requests that hold a seat, in order of admission."""
        raise NotImplementedError

    @abstractmethod
    def check(self) -> None:
        """Compare the counters with sums over all requests; raise `RunError` if they differ."""
        raise NotImplementedError
