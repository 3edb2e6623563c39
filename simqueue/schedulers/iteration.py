"""Iteration-level scheduling (Orca, OSDI 2022): the base of all policies that decide at every step.

The base keeps queue, seats, blocks and counters. A policy is the set of rules that it overrides:

========================  ==========================================================================================
``queue()``               the order of waiting requests
``budget()``              how many tokens a step has
``chunk(job, step)``      how many context tokens `job` computes in this step
``may_admit(job, step)``  whether the head of the queue can have a seat now, besides seats, blocks and budget
``victim(step)``          which request is preempted if blocks are short
``compose(step)``         the whole step: what comes first, put together with the verbs of `Step`
========================  ==========================================================================================

By default a step is: decodes, one token each; unfinished prefills, in order of admission; then, unless a request was
preempted, waiting requests from the head of the queue, until the first that does not fit.

Preemption is by recompute: the victim's blocks are freed, its tokens are kept, and its whole context is computed again.
With the default victim the oldest running request is preempted only when it is alone, and alone it fits. So there is no
livelock.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, SupportsIndex

from mypy_extensions import mypyc_attr

from simqueue.errors import InputError, RunError
from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.answers import budget_of, queue_of
from simqueue.schedulers.base import Plan, Policy
from simqueue.schedulers.decoding import DecodeCounters
from simqueue.schedulers.keys import IterationSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.seats import Seats
from simqueue.schedulers.step import Step
from simqueue.schedulers.waiting import FirstComeFirstServed, WaitingQueue, waiting_queue
from simqueue.settings import Settings


@mypyc_attr(allow_interpreted_subclasses=True)
class IterationPolicy(Policy):
    """Queue, seats, blocks and counters of a policy that decides at every step.

    Parameters
    ----------
    settings : Settings
        With ``max_num_seqs``, unless `seats` is given.
    kv : KVCache
    limits : RequestLimits
        What is rejected at arrival.
    seats : int, optional
        Number of seats.

    Attributes
    ----------
    waiting : WaitingQueue
    running : dict of Job to None
        The requests that hold a seat, in order of admission.
    prefilling : dict of Job to None
        Those of them whose context is not complete.
    """

    steady_rules: ClassVar[tuple[str, ...]] = ("*",)
    runs_long_prompts_alone: ClassVar[bool] = False
    """Whether a prompt that is longer than the budget can run in a step of its own."""
    walks: bool = False
    """Whether every step walks the batch, as otherwise only a step does in which something is short (for checks)."""

    def __init__(self, settings: Settings, kv: KVCache, limits: RequestLimits, *, seats: int | None = None) -> None:
        self.settings = settings
        self.kv = kv
        self.limits = limits
        self.seats = Seats(kv, _seats_of(settings) if seats is None else seats)
        self.running = self.seats.running
        self.prefilling = self.seats.prefilling
        self.waiting = queue_of(self)

    # -- rules ---------------------------------------------------------------------------------------------------

    def queue(self) -> WaitingQueue:
        """Return an empty queue; its order is the order of admission. Asked once, when the policy is made."""
        if isinstance(self.settings, IterationSettings):
            return waiting_queue(self.settings.order)
        return FirstComeFirstServed()

    @abstractmethod
    def budget(self) -> SupportsIndex:
        """Return the token budget of the next step."""
        raise NotImplementedError

    @abstractmethod
    def chunk(self, job: Job, step: Step) -> SupportsIndex:
        """Return how many of ``job.rest_tokens`` to compute in this step.

        0: none, and none for the requests after it. `job` is a running request with an unfinished context, or the
        head of the queue. ``step.budget`` tokens are left, at least 1.
        """
        raise NotImplementedError

    def may_admit(self, job: Job, step: Step) -> object:
        """Return whether the head of the queue can have a seat now. Seats, blocks and budget are checked already."""
        return True

    def victim(self, step: Step) -> Job:
        """Return the running request to preempt: by default the one admitted last.

        A request that was given prompt tokens in this step (``step.has_served``) cannot be preempted in it.
        """
        return next(job for job in reversed(self.running) if not step.has_served(job))

    def compose(self, step: Step) -> None:
        """Put the step together."""
        step.decode_all()
        step.continue_prefills()
        if not step.preempted:
            step.admit_waiting()

    # -- the contract of policies --------------------------------------------------------------------------------

    @property
    def decodes(self) -> DecodeCounters:
        """``decodes.seqs`` requests decode; together they attend to ``decodes.context_tokens`` tokens."""
        return self.seats.decodes

    @property
    def waiting_count(self) -> int:
        """Requests in the queue now."""
        return len(self.waiting)

    @property
    def running_count(self) -> int:
        """Requests that hold a seat now."""
        return len(self.seats.running)

    @property
    def free_seats(self) -> int:
        """Seats that no request holds."""
        return self.seats.free

    def rejection(self, request: Request) -> str | None:
        """Return why `request` can never be served, or None."""
        return self.limits.rejection(request, self.kv)

    def due_tokens(self, request: Request) -> int:
        """Return how many tokens are made for `request`."""
        return self.limits.output_tokens(request)

    def add(self, job: Job) -> bool:
        """Queue `job`. It can change a plan only as the head of the queue, and while a seat is free."""
        job.output_tokens = self.due_tokens(job.request)
        self.waiting.push(job)
        return self.waiting.head is job and self.seats.free > 0

    def cancel(self, job: Job, uncommitted: Sequence[Plan]) -> list[Job]:
        """Stop counting `job`; see `Policy.cancel`."""
        if job in self.running:
            if uncommitted:
                self._leave_with_first(job, uncommitted)
                return []
            self.kv.release(job, self.seats.vacate(job))
        elif len(uncommitted) > 1 and job in uncommitted[-1].preempted:
            if job not in uncommitted[0].finishing:  # preempted in the next step, it still runs in this one
                uncommitted[0].finishing.append(job)
            return []
        else:
            self.waiting.remove(job)
        self.kv.forget(job)
        return [job]

    def _leave_with_first(self, job: Job, uncommitted: Sequence[Plan]) -> None:
        """Let a cancelled `job` that runs leave with the plan under way, even if the next one runs it too."""
        under_way, latest = uncommitted[0], uncommitted[-1]
        if job not in self.seats.leaving:
            self.seats.stop(job)
        elif job in under_way.finishing:
            return
        else:
            latest.finishing.remove(job)
        under_way.finishing.append(job)
        self.seats.cancelled[job] = None

    def plan(self, now_s: float) -> Plan | None:
        """Decide the next step."""
        step = Step(self, now_s, budget_of(self))
        self.compose(step)
        return step.close()

    def take(self, plan: Plan, n: int) -> None:
        """Take blocks and move the counters for `n` more repeats."""
        if n:
            decodes = self.seats.decodes
            if decodes.steps + n > decodes.next_end:
                raise RunError(f"{type(self).__name__}: a plan repeats beyond the last token of a request")
            self.kv.take(decodes.demand_of(n))
            plan.ended.extend(self.seats.step(n))
            self.kv.step_number = decodes.steps

    def commit(self, plan: Plan) -> None:
        """Give back seats and blocks of the requests that leave with `plan`."""
        kv, seats = self.kv, self.seats
        for job in plan.finishing:
            if job in seats.leaving:
                served = job not in seats.cancelled
                tokens = seats.vacate(job)
                if served:
                    kv.complete(job, tokens)
                kv.release(job, tokens)
            else:  # preempted by the plan after this one
                self.waiting.remove(job)
            kv.forget(job)

    # -- checks --------------------------------------------------------------------------------------------------

    def state(self) -> Hashable:
        """Return what decides all further plans, if no request arrives and no token is made."""
        running = tuple((job.index, job.known_tokens, job.computed_tokens) for job in self.running)
        return running, self.waiting.snapshot(), self.kv.state()

    def members(self) -> list[Job]:
        """Return the requests that hold a seat, in order of admission."""
        return list(self.running)

    def check(self) -> None:
        """Compare pool and counters with sums over all requests that hold a seat (between commit and plan)."""
        self.seats.check()


def _seats_of(settings: Settings) -> int:
    seats = getattr(settings, "max_num_seqs", None)
    if not isinstance(seats, int):
        raise InputError(f"{type(settings).__name__} has no max_num_seqs: define it, or give the number of seats")
    return seats
