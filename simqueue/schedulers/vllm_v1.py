"""The scheduler of vLLM's V1 engine: one list, one token budget, no phases.

In every step the running requests are served first, in list order (order of admission), each with one token or with the
next piece of its prompt, until the budget is used up. Then, if no request was preempted, waiting requests are admitted
from the head of the queue. A request that lacks a block preempts: the latest admitted, or with ``policy: priority`` the
least urgent. `VllmV1Rules` holds what differs between versions and is no flag; which version has which rules and
defaults is data of `simqueue.engines`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from mypy_extensions import mypyc_attr

from simqueue.errors import InputError
from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.answers import victim_of
from simqueue.schedulers.base import Batching
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.step import Step
from simqueue.schedulers.waiting import ByKey, FirstComeFirstServed, WaitingQueue
from simqueue.steptime.base import made_again

UNCAPPED = 1 << 62


@dataclass(frozen=True, slots=True)
class VllmV1Rules:
    """What differs between versions and is no flag.

    Attributes
    ----------
    lone_request_uncapped : bool
        Whether long_prefill_token_threshold does not apply to a request that is alone.
    unchunked_overflow : {"stop", "skip"}
        With chunking off, a prompt beyond the rest of the budget ends admission for the step, or is skipped (and
        the skipped prompts return to the queue in reversed order).
    ties_by_id : bool
        Whether requests with equal priority and arrival are ordered by their id as text (else by arrival).
    """

    lone_request_uncapped: bool = True
    unchunked_overflow: Literal["stop", "skip"] = "stop"
    ties_by_id: bool = True

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)


@mypyc_attr(allow_interpreted_subclasses=True)
class VllmV1(IterationPolicy):
    """vLLM V1.

    Parameters
    ----------
    flags : VllmV1Settings
    kv : KVCache
        With a registration lag of 1 if scheduling is asynchronous and prefixes are cached.
    limits : RequestLimits
    rules : VllmV1Rules
    """

    Settings: ClassVar[type[VllmV1Settings]] = VllmV1Settings
    summary: ClassVar[str] = "vLLM V1: running requests in list order, then waiting ones, one token budget"
    steady_rules: ClassVar[tuple[str, ...]] = ("*",)

    def __init__(
        self, flags: VllmV1Settings, kv: KVCache, limits: RequestLimits, rules: VllmV1Rules | None = None
    ) -> None:
        self.flags = flags
        self.rules = rules or VllmV1Rules()
        self.depth = 2 if flags.async_scheduling else 1
        self._priority = flags.policy == "priority"
        self._passes_over = self.rules.unchunked_overflow == "skip" and not flags.enable_chunked_prefill
        self._cap = UNCAPPED
        if kv.shares and kv.registration_lag != self.depth - 1:
            raise InputError(f"vLLM V1 with {self.depth} steps in flight: needs a registration lag of {self.depth - 1}")
        super().__init__(flags, kv, limits, seats=flags.max_num_seqs)

    # -- the step ------------------------------------------------------------------------------------------------

    def compose(self, step: Step) -> None:
        """Serve the running requests, then admit waiting ones."""
        self._cap = self._prefill_cap()
        if self.running:
            self._serve_running(step)
        if self.waiting.line and not step.preempted:
            self._admit_waiting(step)

    def _serve_running(self, step: Step) -> None:
        """Serve the running requests by `_walk`, or with the same result from the sums over all of them."""
        blocks, pieces = step.begin_decodes(), self._unhindered_pieces(step)
        if self.walks or pieces is None or blocks + sum([need for _, _, need in pieces]) > self.kv.free:
            self._walk(step)
            return
        if blocks:
            self.kv.take(blocks)
        step.budget -= self.seats.decodes.seqs
        for job, new, need in pieces:
            self.kv.extend(job, need, job.computed_tokens + new)
            step.prefill(job, new)

    def _walk(self, step: Step) -> None:
        """Go through the running requests in order of admission until the budget is used up: this is the rule.

        Each gets one token, or the next piece of its prompt. If it lacks blocks, requests are preempted until they are
        free. A victim that was already served gives its tokens back to the budget. If a request preempts itself, the
        walk goes on, since the next request may need no block. (With fcfs it was the last one.)
        """
        served: dict[Job, int] = {}
        for job in list(self.running):
            if step.budget <= 0:
                break
            if job not in self.running or job in self.seats.leaving:
                continue
            new = 1 if job.decoding else min(job.rest_tokens, self._cap, step.budget)
            if self._allocate(job, new, served, step):
                served[job] = new
                step.budget -= new
        for job, new in served.items():
            if not job.decoding:
                step.budget += new  # `prefill` takes it again
                step.prefill(job, new)
        step.left_out = [job for job in self.running if job.decoding and job not in served]

    def _unhindered_pieces(self, step: Step) -> list[tuple[Job, int, int]] | None:
        """Return what unfinished prompts get in the walk, in tokens and new blocks, if no request hinders another.

        None if the budget is too small for all decodes, or if a prompt takes tokens from decodes that stand after it in
        the list: only the walk tells which. If there are also blocks for all, the walk has no choice to make, and its
        result follows from sums: every decode gets its token, and the prompts share what the decodes leave of the
        budget, in order.
        """
        decodes = self.seats.decodes
        budget = step.budget - decodes.seqs
        if budget < 0:
            return None
        pieces = []
        for job in self.prefilling:
            new = min(job.rest_tokens, self._cap)
            if new > budget:
                if job.rank < decodes.latest_rank:
                    return None
                new = budget
            if new <= 0:
                break
            before = job.computed_tokens
            pieces.append((job, new, self.kv.growth(job.request, before, before + new)))
            budget -= new
        return pieces

    def _allocate(self, job: Job, new: int, served: dict[Job, int], step: Step) -> bool:
        """Take the blocks that `job` needs, preempting until they are free; False if it was preempted itself."""
        before = job.computed_tokens
        kv = self.kv
        need = self.seats.decodes.needs_block(job) if job.decoding else kv.growth(job.request, before, before + new)
        while need > kv.free:
            victim = victim_of(self, step)
            step.preempt(victim, granted=served.pop(victim, 0))
            if victim is job:
                return False
        if job.decoding:
            kv.take(need)
        else:
            kv.extend(job, need, before + new)
        return True

    def victim(self, step: Step) -> Job:
        """Return the latest admitted request, or with priorities the least urgent one."""
        if self._priority:
            return max(self.running, key=lambda job: (job.request.priority, job.request.arrival_s))
        return next(reversed(self.running))

    def _admit_waiting(self, step: Step) -> None:
        """Admit waiting requests until one does not fit; without chunking, old versions pass over long prompts."""
        passed_over: list[Job] = []
        while self.waiting.line and self.seats.free and step.budget > 0:
            if step.admit_head():
                continue
            if not (self._passes_over and self._is_too_long(self.waiting.head, step, step.head_hit.tokens)):
                break
            passed_over.append(self.waiting.pop())
        for job in passed_over:
            self.waiting.put_back(job)
        # Two come back in reversed order. One that lacks blocks becomes too long when its cached blocks are reused.
        step.queue_moves = self._passes_over and (len(passed_over) > 1 or step.head_hit.idle_blocks > 0)

    # -- rules ---------------------------------------------------------------------------------------------------

    def queue(self) -> WaitingQueue:
        """Return a queue in order of arrival, or of urgency."""
        return ByKey(self._urgency) if self._priority else FirstComeFirstServed()

    def budget(self) -> int:
        """Return max_num_batched_tokens."""
        return self.flags.max_num_batched_tokens

    def chunk(self, job: Job, step: Step) -> int:
        """Return the rest of what a waiting `job` is to compute, capped by threshold and budget."""
        if self._is_too_long(job, step, job.computed_tokens):
            return 0
        return min(job.rest_tokens, self._cap, step.budget)

    def may_admit(self, job: Job, step: Step) -> bool:
        """Return whether with scheduler_reserve_full_isl all known tokens of `job` fit, not only its first piece."""
        if not self.flags.scheduler_reserve_full_isl:
            return True
        return self.kv.can_admit(job, step.head_hit, job.known_tokens, others_run=bool(self.running))

    def add(self, job: Job) -> bool:
        """Queue `job`. It counts even after the head if long prompts are skipped or the cap is adaptive."""
        changes = super().add(job)
        counts = self._passes_over or self.flags.long_prefill_token_threshold_adaptive
        return changes or (counts and self.seats.free > 0)

    def rejection(self, request: Request) -> str | None:
        """Return why `request` can never be served; without chunking its whole context must fit the budget."""
        reason = super().rejection(request)
        if reason is not None or self.flags.enable_chunked_prefill or not self.limits.reject_oversized:
            return reason
        output_tokens = self.limits.output_tokens(request)
        if request.prompt_tokens + output_tokens - 1 <= self.flags.max_num_batched_tokens:
            return None
        return (
            f"prompt {request.prompt_tokens} + output {output_tokens} may have to be computed at once "
            f"(enable_chunked_prefill is false), max_num_batched_tokens is {self.flags.max_num_batched_tokens}"
        )

    def batching(self) -> Batching:
        """Prompts run in chunks, together with decodes."""
        flags = self.flags
        cap = flags.long_prefill_token_threshold or None
        whole = flags.scheduler_reserve_full_isl
        return Batching("chunked", flags.max_num_seqs, flags.max_num_batched_tokens, cap, whole)

    def _urgency(self, job: Job) -> tuple[int, float, str]:
        request = job.request
        return request.priority, request.arrival_s, request.request_id if self.rules.ties_by_id else ""

    def _prefill_cap(self) -> int:
        flags = self.flags
        inside = len(self.running) + len(self.waiting)
        cap = flags.long_prefill_token_threshold
        if not cap or inside <= int(self.rules.lone_request_uncapped):
            return UNCAPPED
        if flags.long_prefill_token_threshold_adaptive:
            return max(cap, flags.max_num_batched_tokens // inside)
        return cap

    def _is_too_long(self, job: Job, step: Step, computed_tokens: int) -> bool:
        """Whether the prompt of `job` must not be cut and is longer than the rest of the budget."""
        if self.flags.enable_chunked_prefill:
            return False
        return min(job.known_tokens - computed_tokens, self._cap) > step.budget
