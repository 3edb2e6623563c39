"""Iteration-level scheduling (Orca, OSDI 2022): what all policies share that decide anew at every step.

The base runs queue, seats, blocks and counters; a policy is what it says about `chunk` (how many prompt tokens a
request may get now) and, if it differs, about `plan` (who comes first). One step is built in a `Draft`:

1. decodes, one token each; where blocks are short for all of them the batch is walked in order of admission, and
   whoever lacks a block preempts the latest admitted request (perhaps itself);
2. unfinished prefills in order of admission, preempting likewise;
3. newcomers from the head of the queue, if nobody was preempted: seats, budget and blocks must be there, and the
   first that does not fit ends admission for the step.

Preemption is by recompute: the victim's blocks are freed, its tokens are kept and its whole context is prefilled again.
The oldest running request is only ever preempted when it is alone, and alone it fits; so there is no livelock.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field

from pydantic import Field

from simqueue.errors import RunError
from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Plan, Policy
from simqueue.schedulers.decoding import DecodeClock
from simqueue.schedulers.door import Door
from simqueue.schedulers.waiting import Order, waiting_queue
from simqueue.settings import Settings
from simqueue.steptime.base import Batch


class IterationSettings(Settings):
    """Keys that every iteration-level policy has."""

    max_num_seqs: int = Field(
        256,
        ge=1,
        description="seats: requests that may run at one time",
        json_schema_extra={"unit": "requests"},
    )
    order: Order = Field("fcfs", description="which waiting request is admitted next; ties by arrival")


@dataclass(slots=True)
class Draft:
    """A step being put together."""

    budget: int
    decodes: bool = False
    pieces: list[tuple[int, int]] = field(default_factory=list)
    tail_decodes: int = 0
    tail_context: int = 0
    first: list[Job] = field(default_factory=list)
    admitted: list[tuple[Job, int]] = field(default_factory=list)
    preempted: list[Job] = field(default_factory=list)


class IterationPolicy(Policy):
    """Queue, seats, blocks and counters of a policy that decides at every step.

    Parameters
    ----------
    settings : IterationSettings
    kv : KVCache
    door : Door
        What is refused at arrival.
    """

    def __init__(self, settings: IterationSettings, kv: KVCache, door: Door) -> None:
        self.kv = kv
        self.door = door
        self.max_num_seqs = settings.max_num_seqs
        self.waiting = waiting_queue(settings.order)
        self.clock = DecodeClock(kv.block_size, grows=kv.grows)
        self.running: dict[Job, None] = {}
        self.prefilling: dict[Job, None] = {}
        self._places = 0

    @abstractmethod
    def chunk(self, job: Job, draft: Draft) -> int:
        """Return how many of ``job.rest_tokens`` may be computed in this step; 0: not now, and nobody behind it."""

    @property
    @abstractmethod
    def step_tokens(self) -> int:
        """Token budget of one step."""

    # -- what the replica asks and tells -------------------------------------------------------------------------

    @property
    def waiting_count(self) -> int:
        """Requests in the queue now."""
        return len(self.waiting)

    def refusal(self, request: Request) -> str | None:
        """Return why `request` can never be served, or None."""
        return self.door.refusal(request, self.kv)

    def add(self, job: Job) -> bool:
        """Queue `job`; behind a full house or somebody blocked it changes nothing."""
        self.waiting.push(job)
        return self.waiting.head is job and len(self.running) < self.max_num_seqs

    def plan(self, now_s: float) -> Plan | None:
        """Decide the next step: decodes, then unfinished prefills, then newcomers."""
        draft = Draft(self.step_tokens)
        self.run_decodes(draft)
        self.run_prefills(draft)
        if not draft.preempted:
            self.admit(draft)
        return self.seal(draft)

    def take(self, plan: Plan, n: int) -> None:
        """Take blocks and move the decode clock for `n` more repeats."""
        if n:
            self.kv.take(self.clock.demand(n))
            plan.ended.extend(self.clock.step(n))

    def commit(self, plan: Plan) -> None:
        """Give back seats and blocks of those that have made their last token."""
        for job in plan.finishing:
            del self.running[job]
            self.kv.give_back(self.kv.held(job.request, job.known_tokens - 1))

    # -- building a step -----------------------------------------------------------------------------------------

    def run_decodes(self, draft: Draft) -> None:
        """Give every decoding request its token, preempting the latest admitted where blocks are short."""
        if not self.clock.seqs:
            return
        demand = self.clock.demand()
        if demand <= self.kv.free:
            self.kv.take(demand)
        else:
            self._walk_decodes(draft)
        draft.decodes = True
        draft.budget -= self.clock.seqs

    def run_prefills(self, draft: Draft) -> None:
        """Go on with unfinished prompts, in order of admission."""
        for job in list(self.prefilling):
            if job not in self.prefilling:
                continue
            new = self.chunk(job, draft)
            if new <= 0:
                break
            need = self.kv.growth(job.request, job.computed_tokens, job.computed_tokens + new)
            if self._make_room(job, need, draft):
                self._feed(job, new, draft)

    def admit(self, draft: Draft) -> None:
        """Seat newcomers from the head of the queue until one does not fit."""
        while self.waiting and len(self.running) < self.max_num_seqs and draft.budget > 0:
            job = self.waiting.head
            new = self.chunk(job, draft)
            if new <= 0:
                break
            need = self.kv.growth(job.request, 0, new)
            if not self.kv.can_admit(need, others_run=bool(self.running)):
                break
            self.waiting.pop()
            self.kv.take(need)
            job.place = self._places
            self._places += 1
            self.running[job] = None
            self.prefilling[job] = None
            draft.admitted.append((job, 0))
            self._feed(job, new, draft)

    def seal(self, draft: Draft) -> Plan | None:
        """Turn the draft into a plan and move the counters past its first step."""
        ticking = self.clock.seqs if draft.decodes else 0
        decodes = ticking + draft.tail_decodes
        if not (decodes or draft.pieces or draft.preempted):
            return None
        context = (self.clock.context_tokens if ticking else 0) + draft.tail_context
        batch = Batch(decodes, decodes, context, tuple(draft.pieces), ticking + len(draft.first))
        running, waiting = len(self.running), len(self.waiting)
        ended = self.clock.step() if ticking else []
        self._start_decoding(draft.first, ended)
        plan = Plan(
            batch=batch,
            repeat=1,
            ticking=ticking,
            running=running,
            waiting=waiting,
            work=batch,
            admitted=draft.admitted,
            preempted=draft.preempted,
            first=draft.first,
            ended=ended,
            finishing=ended,
        )
        if decodes and not (draft.first or draft.pieces or draft.preempted or ended or self.prefilling):
            limit = self.clock.steps_to_first_end()
            plan.repeat = 1 + self.clock.carried(self.kv.free, limit)
        return plan

    def preempt(self, victim: Job, draft: Draft, *, granted: bool) -> None:
        """Take everything from `victim` and put it back into the queue.

        Parameters
        ----------
        granted : bool
            Whether it is a decode that already got its token (and block) in this step; it leaves the step again.
        """
        if victim.decoding:
            self.clock.leave(victim)
            held_tokens = victim.computed_tokens + granted
            draft.budget += granted
        else:
            del self.prefilling[victim]
            held_tokens = victim.computed_tokens
        self.kv.give_back(self.kv.held(victim.request, held_tokens))
        victim.recomputed_tokens += victim.computed_tokens
        victim.computed_tokens = 0
        victim.preemptions += 1
        del self.running[victim]
        self.waiting.put_back(victim)
        draft.preempted.append(victim)

    def _walk_decodes(self, draft: Draft) -> None:
        for job in [job for job in self.running if job.decoding]:
            if not job.decoding:
                break
            need = self.clock.needs_block(job)
            while need > self.kv.free:
                victim = next(reversed(self.running))
                self.preempt(victim, draft, granted=False)
                if victim is job:
                    return
            self.kv.take(need)

    def _make_room(self, job: Job, need: int, draft: Draft) -> bool:
        while need > self.kv.free:
            victim = next(reversed(self.running))
            self.preempt(victim, draft, granted=victim.decoding)
            if victim is job:
                return False
        self.kv.take(need)
        return True

    def _feed(self, job: Job, new: int, draft: Draft) -> None:
        draft.budget -= new
        if new == 1 and job.known_tokens > job.request.prompt_tokens:
            draft.tail_decodes += 1
            draft.tail_context += job.computed_tokens + 1
        else:
            draft.pieces.append((job.computed_tokens, new))
        job.computed_tokens += new
        if not job.rest_tokens:
            del self.prefilling[job]
            draft.first.append(job)

    def _start_decoding(self, first: list[Job], ended: list[Job]) -> None:
        for job in first:
            job.known_tokens += 1
            if job.known_tokens == job.last_known_tokens:
                ended.append(job)
            else:
                self.clock.join(job)
        if first and len(ended) > 1:
            ended.sort(key=lambda job: job.place)

    def state(self) -> Hashable:
        """Return all that decides the further course, if nobody arrives and no token is made."""
        running = tuple((job.index, job.known_tokens, job.computed_tokens) for job in self.running)
        return running, self.waiting.snapshot()

    # -- checks --------------------------------------------------------------------------------------------------

    def members(self) -> list[Job]:
        """Return who holds a seat, in order of admission."""
        return list(self.running)

    def check(self) -> None:
        """Compare pool and counters with a walk over everybody who holds a seat (between commit and plan)."""
        decoding = [job for job in self.running if job.decoding]
        self.clock.check(decoding)
        if len(self.running) > self.max_num_seqs:
            raise RunError(f"{len(self.running)} requests run on {self.max_num_seqs} seats")
        if len(decoding) + len(self.prefilling) != len(self.running):
            raise RunError(
                f"{len(self.running)} requests run, {len(decoding)} decode and {len(self.prefilling)} prefill"
            )
        held = sum(self.kv.held(job.request, self.clock.tokens(job) - 1) for job in decoding)
        held += sum(self.kv.held(job.request, job.computed_tokens) for job in self.prefilling)
        self.kv.check(held)
