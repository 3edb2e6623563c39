"""Iteration-level scheduling (Orca, OSDI 2022): what all policies share that decide anew at every step.

The base runs queue, seats, blocks and counters; a policy is what it says about `chunk` (how many prompt tokens a
request may get now) and, if it differs, about `plan` (who comes first). One step is built in a `Draft`:

1. decodes, one token each; where blocks are short for all of them the batch is walked in order of admission, and
   whoever lacks a block preempts the latest admitted request (perhaps itself);
2. unfinished prefills in order of admission, preempting likewise;
3. newcomers from the head of the queue, if nobody was preempted: seats, budget and blocks must be there, and the
   first that does not fit ends admission for the step.

Preemption is by recompute: the victim's blocks are freed, its tokens are kept and its whole context is prefilled
again. The oldest running request is only ever preempted when it is alone, and alone it fits; so there is no livelock.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.kvcache.base import NO_HIT, Hit, KVCache
from simqueue.kvcache.prefix import PrefixKVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Plan, Policy
from simqueue.schedulers.decoding import DecodeClock
from simqueue.schedulers.door import Door
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.keys import IterationSettings
from simqueue.schedulers.waiting import WaitingQueue, waiting_queue
from simqueue.steptime.base import Batch

new_tuple = tuple.__new__


@mypyc_attr(allow_interpreted_subclasses=True)
class IterationPolicy(Policy):
    """Queue, seats, blocks and counters of a policy that decides at every step.

    Parameters
    ----------
    settings : IterationSettings
    kv : KVCache
    door : Door
        What is refused at arrival.
    """

    step_tokens: int
    """Token budget of one step."""
    walks: bool = False
    """Whether every step walks the batch, as it else does only where something is short (for checks)."""

    def __init__(self, settings: IterationSettings, kv: KVCache, door: Door) -> None:
        self._start(kv, door, settings.max_num_seqs, waiting_queue(settings.order))

    def _start(self, kv: KVCache, door: Door, max_num_seqs: int, waiting: WaitingQueue) -> None:
        self.kv = kv
        self.door = door
        self.max_num_seqs = max_num_seqs
        self.waiting = waiting
        self.clock = DecodeClock(kv.block_size, grows=kv.grows)
        self.running: dict[Job, None] = {}
        self.prefilling: dict[Job, None] = {}
        self.ended: dict[Job, None] = {}
        self._places = 0
        self.step_number = 0
        if isinstance(kv, PrefixKVCache):
            kv.follow(lambda: self.step_number)

    @abstractmethod
    def chunk(self, job: Job, draft: Draft) -> int:
        """Return how many of ``job.rest_tokens`` may be computed in this step; 0: not now, and nobody behind it."""
        raise NotImplementedError

    # -- what the replica asks and tells -------------------------------------------------------------------------

    @property
    def waiting_count(self) -> int:
        """Requests in the queue now."""
        return len(self.waiting)

    @property
    def free_seats(self) -> int:
        """Seats that nobody holds."""
        return self.max_num_seqs - len(self.running)

    def refusal(self, request: Request) -> str | None:
        """Return why `request` can never be served, or None."""
        return self.door.refusal(request, self.kv)

    def add(self, job: Job) -> bool:
        """Queue `job`; behind a full house or somebody blocked it changes nothing."""
        job.output_tokens = self.door.output_tokens(job.request)
        self.waiting.push(job)
        return self.waiting.head is job and len(self.running) < self.max_num_seqs

    def holds_seat(self, job: Job) -> bool:
        """Return whether `job` runs."""
        return job in self.running

    def withdraw(self, plan: Plan, job: Job) -> None:
        """Let `job` make no more tokens; it leaves when `plan` is committed."""
        if job in self.ended:
            return
        if job.decoding:
            self._stop_decoding(job)
        else:
            del self.prefilling[job]
        self.ended[job] = None
        plan.finishing.append(job)

    def cancel(self, job: Job) -> bool:
        """Let `job` go: out of the queue, or out of its seat with all its blocks."""
        if job in self.running:
            self.kv.release(job, self._vacate(job))
        else:
            self.waiting.remove(job)
        self.kv.forget(job)
        return True

    def plan(self, now_s: float) -> Plan | None:
        """Decide the next step: decodes, then unfinished prefills, then newcomers."""
        draft = self.new_draft()
        if self.clock.seqs:
            self.run_decodes(draft)
        if self.prefilling:
            self.run_prefills(draft)
        if self.waiting.line and not draft.preempted:
            self.admit(draft)
        return self.seal(draft)

    def take(self, plan: Plan, n: int) -> None:
        """Take blocks and move the decode clock for `n` more repeats."""
        if n:
            self.kv.take(self.clock.demand_of(n))
            ended = self.clock.step(n)
            self.step_number = self.clock.steps
            if ended:
                self._note_ended(ended)
                plan.ended.extend(ended)

    def commit(self, plan: Plan) -> None:
        """Give back seats and blocks of those that have made their last token."""
        for job in plan.finishing:
            if job in self.ended:
                tokens = self._vacate(job)
                self.kv.complete(job, tokens)
                self.kv.release(job, tokens)
            else:
                self.waiting.remove(job)
            self.kv.forget(job)

    # -- building a step -----------------------------------------------------------------------------------------

    def new_draft(self) -> Draft:
        """Begin a step. Decodes have their last step behind them until `run_decodes` says that they take part."""
        clock = self.clock
        self.step_number = clock.steps if clock.seqs else clock.steps + 1
        return Draft(self.step_tokens, self.observed)

    def run_decodes(self, draft: Draft) -> None:
        """Give every decoding request its token, preempting the latest admitted where blocks are short."""
        clock = self.clock
        if not clock.seqs:
            return
        self.step_number = clock.steps + 1
        demand = clock.demand()
        if demand > self.kv.free or self.walks:
            self._walk_decodes(draft)
        elif demand:
            self.kv.take(demand)
        draft.decodes = True
        draft.budget -= clock.seqs

    def run_prefills(self, draft: Draft) -> None:
        """Go on with unfinished prompts, in order of admission."""
        prefilling, kv = self.prefilling, self.kv
        served: list[Job] = []
        for job in list(prefilling):
            if job not in prefilling:
                continue
            new = self._piece(job, draft)
            if not new:
                break
            before = job.computed_tokens
            need = kv.growth(job.request, before, before + new)
            if need <= kv.free or self._make_room(job, need, draft, served):
                served.append(job)
                kv.extend(job, need, before + new)
                if draft.feed(job, new):
                    del prefilling[job]

    def admit(self, draft: Draft) -> None:
        """Seat newcomers from the head of the queue until one does not fit."""
        waiting = self.waiting
        while waiting.line and len(self.running) < self.max_num_seqs and draft.budget > 0:
            if not self.admit_one(waiting.head, draft):
                break

    def admit_one(self, job: Job, draft: Draft) -> bool:
        """Seat the head of the queue if it fits."""
        kv = self.kv
        hit = kv.lookup(job) if kv.shares else NO_HIT
        cached = job.computed_tokens = hit.tokens
        new = self._piece(job, draft)
        if not new or not self.fits(job, hit, new):
            job.computed_tokens = 0
            draft.head_may_grow |= hit.may_grow
            return False
        self.waiting.pop()
        job.place = self._places
        self._places += 1
        kv.admit(job, hit, cached + new)
        self.running[job] = None
        draft.admitted.append((job, cached))
        if not draft.feed(job, new):
            self.prefilling[job] = None
        return True

    def _piece(self, job: Job, draft: Draft) -> int:
        """Return what `chunk` says, having seen that it is part of what is left to compute."""
        new = self.chunk(job, draft)
        rest = job.known_tokens - job.computed_tokens
        if not 0 <= new <= rest:
            name, request_id = type(self).__name__, job.request.request_id
            raise RunError(f"{name}.chunk gives {new} tokens to '{request_id}': must be 0 to {rest}, its rest")
        return new

    def fits(self, job: Job, hit: Hit, new: int) -> bool:
        """Return whether the blocks are there for a newcomer's first `new` tokens beside what is cached."""
        return self.kv.can_admit(job, hit, hit.tokens + new, others_run=bool(self.running))

    def seal(self, draft: Draft) -> Plan | None:
        """Make a plan of the draft and move the counters past its first step."""
        clock = self.clock
        kv, left_out, first, pieces = self.kv, draft.left_out, draft.first, draft.pieces
        for job in left_out:
            self._stop_decoding(job)
        seqs = clock.seqs
        draft.ticking = ticking = seqs if draft.decodes else 0
        decodes, context = ticking + draft.tail_decodes, draft.tail_context
        if not seqs:
            clock.step()  # an empty step has a number too: what is cached until the next one is older than its own
        if not (decodes or pieces or draft.preempted):
            return None
        if ticking:
            context += clock.context_tokens
        # as Batch(...) would, in half the time
        draft.batch = draft.work = new_tuple(Batch, (decodes, decodes, context, tuple(pieces), ticking + len(first)))
        draft.running, draft.waiting = len(self.running), len(self.waiting.line)
        draft.blocks_used = kv.total - kv.free
        if draft.fed is not None:
            draft.members = self._members(draft, draft.fed)
        somebody_leaves = bool(self.ended)
        draft.ended = draft.finishing = ended = clock.step() if ticking else []
        if ended:
            self._note_ended(ended)
        if first or left_out:
            self._start_decoding(draft, ended)
        elif ticking and not (ended or decodes > ticking or pieces or self._may_change(draft, somebody_leaves)):
            draft.repeat = 1 + clock.carried(kv.free, clock.next_end - clock.steps)
        return draft

    def _may_change(self, draft: Draft, somebody_leaves: bool) -> bool:
        """Whether a step of decodes alone may be followed by another, though nobody arrives or ends."""
        return bool(draft.preempted or self.prefilling or draft.head_may_grow or somebody_leaves)

    def preempt(self, victim: Job, draft: Draft, *, granted: int) -> None:
        """Take everything from `victim` and put it back into the queue.

        Parameters
        ----------
        granted : int
            1 if it is a decode that already got its token (and block) in this step; it leaves the step again.
        """
        computed = self._vacate(victim, granted)
        draft.budget += granted
        self.kv.release(victim, computed + granted)
        victim.recomputed_tokens += computed
        victim.computed_tokens = 0
        victim.preemptions += 1
        self.waiting.put_back(victim)
        draft.preempted.append(victim)

    def _vacate(self, job: Job, granted: int = 0) -> int:
        """Free the seat of `job`; return its tokens in the cache, without one that was granted in this step."""
        del self.running[job]
        if job.decoding:
            self._stop_decoding(job, granted)
        elif job in self.prefilling:
            del self.prefilling[job]
        else:
            del self.ended[job]
        return job.computed_tokens

    def _walk_decodes(self, draft: Draft) -> None:
        for job in [job for job in self.running if job.decoding]:
            if not job.decoding:
                break
            need = self.clock.needs_block(job)
            while need > self.kv.free:
                victim = next(reversed(self.running))
                self.preempt(victim, draft, granted=0)
                if victim is job:
                    return
            self.kv.take(need)

    def _make_room(self, job: Job, need: int, draft: Draft, served: list[Job]) -> bool:
        """Preempt the latest admitted until `need` blocks are free, but nobody whose prompt was served in this step.

        Returns False if that is `job` itself.
        """
        while need > self.kv.free:
            victim = next(other for other in reversed(self.running) if other not in served)
            self.preempt(victim, draft, granted=int(victim.decoding))
            if victim is job:
                return False
        return True

    def _start_decoding(self, draft: Draft, ended: list[Job]) -> None:
        for job in draft.left_out:
            self.clock.join(job)
            self.kv.begin_decoding(job)
        for job in draft.first:
            job.known_tokens += 1
            if job.known_tokens == job.last_known_tokens:
                ended.append(job)
                self.ended[job] = None
            else:
                self.clock.join(job)
                self.kv.begin_decoding(job)
        if draft.first and len(ended) > 1:
            ended.sort(key=lambda job: job.place)

    def _stop_decoding(self, job: Job, granted: int = 0) -> None:
        self.clock.leave(job)
        self.kv.end_decoding(job, job.computed_tokens + granted)

    def _note_ended(self, ended: list[Job]) -> None:
        for job in ended:
            self.ended[job] = None
            self.kv.end_decoding(job, job.computed_tokens)

    def _members(self, draft: Draft, fed: list[tuple[Job, int]]) -> list[tuple[Job, int]]:
        decoding = [(job, 1) for job in self.running if job.decoding] if draft.decodes else []
        return sorted(decoding + fed, key=lambda member: member[0].place)

    # -- checks --------------------------------------------------------------------------------------------------

    def state(self) -> Hashable:
        """Return all that decides the further course, if nobody arrives and no token is made."""
        running = tuple((job.index, job.known_tokens, job.computed_tokens) for job in self.running)
        return running, self.waiting.snapshot(), self.kv.state()

    def members(self) -> list[Job]:
        """Return who holds a seat, in order of admission."""
        return list(self.running)

    def check(self) -> None:
        """Compare pool and counters with a walk over everybody who holds a seat (between commit and plan)."""
        decoding = [job for job in self.running if job.decoding]
        self.clock.check(decoding)
        if len(self.running) > self.max_num_seqs:
            raise RunError(f"{len(self.running)} requests run on {self.max_num_seqs} seats")
        parts = len(decoding), len(self.prefilling), len(self.ended)
        if sum(parts) != len(self.running):
            raise RunError(f"{len(self.running)} requests run; {parts} decode, prefill and have ended")
        self.kv.check(
            (job, self.clock.tokens(job) - 1 if job.decoding else job.computed_tokens) for job in self.running
        )
