"""A step under construction: the verbs with which a policy puts it together.

The builder does the books (seats, blocks, budget, counters). The policy is asked for its rules on the way: `chunk`,
`may_admit`, `victim`. A closed step is the plan, so nothing is copied from one to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simqueue.kvcache.base import NO_HIT
from simqueue.request import Job
from simqueue.schedulers.answers import chunk_of, may_admit, misuse, victim_of
from simqueue.schedulers.base import Plan
from simqueue.steptime.base import Batch

if TYPE_CHECKING:
    from simqueue.schedulers.iteration import IterationPolicy

new_tuple = tuple.__new__
MOST_REFUSALS = 1000
"""Attempts in a row to admit one request in one step, all in vain, after which the policy is stuck."""


class Step(Plan):
    """What has been decided of a step so far.

    Parameters
    ----------
    policy : IterationPolicy
    now_s : float
        When the step is planned.
    budget : int

    Attributes
    ----------
    now_s : float
    budget : int
        Tokens that are still left of the step's budget.
    pieces : list of (past, new)
        Prompt pieces, as in `Batch.prefill`.
    head_hit : Hit
        What the cache had of the request that `admit_head` tried last.
    queue_moves : bool
        Whether the queue has another order after this step, though no request arrives; set by the policy.
    """

    def __init__(self, policy: IterationPolicy, now_s: float, budget: int) -> None:  # the sums are set by `close`
        self.now_s = now_s
        self.budget = budget
        self.pieces: list[tuple[int, int]] = []
        self.head_hit = NO_HIT
        self.queue_moves = False
        self.repeat = 1
        self.admitted = []
        self.preempted = []
        self.unseated = 0
        self.failed = []
        self.first = []
        self.left_out = ()
        self.dropped = []
        self.members = ()
        self._policy = policy
        self._seats = seats = policy.seats
        seats.steps += 1
        self._number = seats.steps
        self._kv = kv = policy.kv
        self._decodes_run = False
        self._walking = False
        self._tail_decodes = 0
        """Recomputed contexts of which only the newest token is left to compute. They count as decodes."""
        self._tail_context = 0
        self._refused: Job | None = None
        self._refusals = 0
        """How often in a row that request was not admitted."""
        self._head_may_grow = False
        """Whether a request that was not admitted can find more of its tokens cached at the next step."""
        self._fed: list[tuple[Job, int]] | None = [] if policy.observed else None
        # Until the decodes take part in this step, what they have made ends with the step before.
        decodes = seats.decodes
        kv.step_number = decodes.steps if decodes.seqs else decodes.steps + 1

    @property
    def is_empty(self) -> bool:
        """Whether no request was given tokens in this step yet."""
        return not (self.pieces or self._has_decodes())

    def has_served(self, job: Job) -> bool:
        """Return whether `job` was given prompt tokens in this step, so that it cannot be preempted in it."""
        return job.served_in == self._number

    # -- verbs of a policy ---------------------------------------------------------------------------------------

    def decode_all(self) -> None:
        """Give every decoding request one token; if blocks are short, preempt. Precondition: only once in a step.

        Which request preempts depends on the order only if blocks are short. So the batch is walked, in order of
        admission, only then; else the sum is taken at once.
        """
        decodes = self._seats.decodes
        if not decodes.seqs:
            return
        if self._decodes_run:
            raise misuse(self._policy, "step.decode_all", "can be used only once in a step")
        need = self.begin_decodes()
        if need > self._kv.free or self._policy.walks:
            self._walk_decodes()
            return
        if need:
            self._kv.take(need)
        self.budget -= decodes.seqs

    def continue_prefills(self) -> None:
        """Go on with unfinished prompts, in order of admission; if blocks are short, preempt."""
        prefilling, kv = self._seats.prefilling, self._kv
        if not prefilling:
            return
        for job in list(prefilling):
            if job not in prefilling or self.has_served(job):
                continue  # preempted for a request before it, or admitted in this step
            if self.budget <= 0:
                break
            new = chunk_of(self._policy, job, self)
            if not new:
                break
            before = job.computed_tokens
            need = kv.growth(job.request, before, before + new)
            if need <= kv.free or self._make_room(job, need):
                kv.extend(job, need, before + new)
                self.prefill(job, new)

    def admit_waiting(self) -> None:
        """Admit requests from the head of the queue until one does not fit."""
        line, seats = self._policy.waiting.line, self._seats
        while line and len(seats.running) < seats.total and self.budget > 0:
            if not self.admit_head():
                break

    def admit_head(self) -> bool:
        """Admit the head of the queue if policy and pool allow it. Precondition: a request waits, a seat is free."""
        policy, kv = self._policy, self._kv
        if not policy.waiting.line or len(self._seats.running) >= self._seats.total:
            raise misuse(policy, "step.admit_head", "needs a waiting request and a free seat")
        job = policy.waiting.head
        self.head_hit = hit = kv.lookup(job) if kv.shares else NO_HIT
        cached = job.computed_tokens = hit.tokens
        new = chunk_of(policy, job, self)
        fits = new > 0 and kv.can_admit(job, hit, cached + new, others_run=bool(self._seats.running))
        if not (fits and may_admit(policy, job, self)):
            job.computed_tokens = 0
            self._head_may_grow |= hit.may_grow
            self._note_refusal(job)
            return False
        self.seat(policy.waiting.pop(), cached)
        kv.admit(job, hit, cached + new)
        self.prefill(job, new)
        return True

    def _note_refusal(self, job: Job) -> None:
        """Count attempts in vain; a policy that repeats them for ever is stopped."""
        self._refusals = self._refusals + 1 if job is self._refused else 1
        self._refused = job
        if self._refusals > MOST_REFUSALS:
            given = f"gave False for '{job.request.request_id}' {self._refusals} times in a row in one step"
            raise misuse(self._policy, "step.admit_head", given)

    def seat(self, job: Job, cached_tokens: int) -> None:
        """Give a seat to `job`, which has left the queue with `cached_tokens` of its context computed."""
        if len(self._seats.running) >= self._seats.total:
            raise misuse(self._policy, "step.seat", f"needs a free seat, all {self._seats.total} are taken")
        if job in self._seats.running:
            raise misuse(self._policy, "step.seat", f"needs a waiting request, '{job.request.request_id}' has a seat")
        self._seats.give(job)
        self.admitted.append((job, cached_tokens))

    def preempt(self, victim: Job, *, granted: int | None = None) -> None:
        """Take seat and blocks of `victim` and put it back into the queue. Its tokens are kept and computed again.

        Parameters
        ----------
        victim : Job
            A request that holds a seat and was not given prompt tokens in this step.
        granted : int, optional
            Tokens that it was already given in this step; they go back to the budget. By default 1 if it decodes and
            the decodes have run.
        """
        if victim not in self._seats.running or self.has_served(victim):
            raise misuse(self._policy, "step.preempt", "needs a running request without prompt tokens of this step")
        if granted is None:
            granted = int(self._decodes_run and victim.decoding)
        computed = self._seats.vacate(victim, granted)
        self.budget += granted
        self._kv.release(victim, computed + granted)
        victim.lost_tokens = max(victim.lost_tokens, computed)
        victim.computed_tokens = 0
        if computed:
            victim.preemptions += 1
        else:
            self.unseated += 1
        self._policy.waiting.put_back(victim)
        self.preempted.append(victim)

    def fail(self, job: Job, reason: str) -> None:
        """End a running `job` with an error when this step is planned. Precondition: it got no tokens in this step."""
        if job not in self._seats.running or self.has_served(job) or self._decodes_run:
            raise misuse(self._policy, "step.fail", "needs a running request without tokens of this step")
        self._kv.release(job, self._seats.vacate(job))
        self._kv.forget(job)
        self.failed.append((job, reason))

    # -- verbs of policies that serve their running requests themselves ------------------------------------------

    def begin_decodes(self) -> int:
        """Let the decoding requests take part in this step; return how many blocks they all need together."""
        decodes = self._seats.decodes
        self._kv.step_number = decodes.steps + 1
        self._decodes_run = True
        return decodes.demand()

    def prefill(self, job: Job, new: int) -> None:
        """Compute the next `new` context tokens of `job`, whose blocks have been taken."""
        job.served_in = self._number
        self.budget -= new
        past = job.computed_tokens
        job.computed_tokens = known = past + new
        if new < 1 or known > job.known_tokens:
            raise misuse(self._policy, "step.prefill", f"needs 1 to {job.known_tokens - past} tokens, not {new}")
        if past < job.lost_tokens:
            job.recomputed_tokens += min(known, job.lost_tokens) - past
        if new == 1 and job.known_tokens > job.request.prompt_tokens:
            self._tail_decodes += 1
            self._tail_context += known
        else:
            self.pieces.append((past, new))
        if self._fed is not None:
            self._fed.append((job, new))
        if known == job.known_tokens:
            del self._seats.prefilling[job]
            self.first.append(job)

    # -- the end -------------------------------------------------------------------------------------------------

    def close(self) -> Plan | None:
        """Return the finished plan, its first step taken; None if nothing runs, was preempted or failed."""
        seats, decodes = self._seats, self._seats.decodes
        if self.budget < 0:
            self._check_overspending()
        for job in self.left_out:
            seats.stop_decoding(job)
        self.ticking = ticking = decodes.seqs if self._decodes_run else 0
        decoded = ticking + self._tail_decodes
        if not decodes.seqs:
            decodes.step()  # a step without decodes has a number too: blocks that it caches are older than later ones
        if not (decoded or self.pieces or self.preempted or self.failed):
            return None
        context = self._tail_context + (decodes.context_tokens if ticking else 0)
        # as Batch(...) would, in half the time
        values = decoded, decoded, context, tuple(self.pieces), ticking + len(self.first)
        self.batch = self.work = new_tuple(Batch, values)
        self.running, self.waiting = len(seats.running), len(self._policy.waiting.line)
        self.blocks_used = self._kv.total - self._kv.free
        if self._fed is not None:
            self.members = self._in_order(self._fed)
        changes = self._can_change(decoded)  # asked before requests make their last token in this very step
        self.ended = self.finishing = ended = seats.step() if ticking else []
        if self.first or self.left_out:
            self._start_decoding(ended)
        elif not (changes or ended):
            self.repeat = 1 + decodes.steps_within(self._kv.free, decodes.next_end - decodes.steps)
        return self

    def _check_overspending(self) -> None:
        """Raise `RunError` if the step takes more tokens than its budget, and is not a long prompt alone."""
        alone = len(self.pieces) == 1 and not self._has_decodes()
        if not (alone and self._policy.runs_long_prompts_alone):
            raise misuse(self._policy, "a step", f"takes {-self.budget} more tokens than its budget")

    def _has_decodes(self) -> bool:
        return bool(self._tail_decodes or (self._decodes_run and self._seats.decodes.seqs))

    def _can_change(self, decoded: int) -> bool:
        """Whether the next step can be a different one, though no request arrives or makes its last token.

        It cannot if this step only decodes, no prompt is unfinished, no request was preempted, and the queue cannot
        move. The queue cannot move if it is empty, or seats or budget are used up, or its head lacks blocks, since free
        blocks only become fewer during repeats. There are three exceptions. A policy can change the order of the queue
        (`queue_moves`). A head whose cached prefix is still being made by a decoding request can find more of it at the
        next step. And with two steps in flight a request that leaves with the step before frees seat and blocks while
        this plan repeats.
        """
        only_decodes = self.ticking and decoded == self.ticking and not self.pieces
        if not only_decodes or self.preempted or self._seats.prefilling:
            return True
        return self.queue_moves or self._head_may_grow or bool(self._seats.leaving)

    def _start_decoding(self, ended: list[Job]) -> None:
        seats = self._seats
        for job in self.left_out:
            seats.start_decoding(job)
        for job in self.first:
            job.known_tokens += 1
            if job.known_tokens == job.last_known_tokens:
                ended.append(job)
                seats.leaving[job] = None
            else:
                seats.start_decoding(job)
        if self.first and len(ended) > 1:
            ended.sort(key=lambda job: job.rank)

    def _in_order(self, fed: list[tuple[Job, int]]) -> list[tuple[Job, int]]:
        decoding = [(job, 1) for job in self._seats.running if job.decoding] if self._decodes_run else []
        return sorted(decoding + fed, key=lambda member: member[0].rank)

    # -- blocks that are short -----------------------------------------------------------------------------------

    def _walk_decodes(self) -> None:
        """Give decodes their blocks one by one, in order of admission; preempt for the request that lacks one."""
        self._walking = True
        for job in [job for job in self._seats.running if job.decoding]:
            if not job.decoding:
                continue  # preempted for a request before it
            need = self._seats.decodes.needs_block(job)
            if need <= self._kv.free or self._make_room(job, need):
                self._kv.take(need)
                self.budget -= 1
        self._walking = False

    def _make_room(self, job: Job, need: int) -> bool:
        """Preempt until `need` blocks are free; return False if `job` itself was preempted."""
        while need > self._kv.free:
            victim = victim_of(self._policy, self)
            # a walk over the decodes has given tokens to the requests before `job`
            has_token = self._decodes_run and victim.decoding and (not self._walking or victim.rank < job.rank)
            self.preempt(victim, granted=int(has_token))
            if victim is job:
                return False
        return True
