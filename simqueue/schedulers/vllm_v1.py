"""The scheduler of vLLM's V1 engine: one list, one token budget, no phases.

In every step the running requests are served first, in list order (order of admission), each with one token or with
the next piece of its prompt, until the budget is gone; then, if nobody was preempted, waiting requests from the head
on. Who lacks a block preempts: the latest admitted, or with ``policy: priority`` the least urgent. What differs between
versions is in `VllmV1Rules`; which version has which rules and defaults is data of `simqueue.engines`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import Hit, KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Plan
from simqueue.schedulers.door import Door
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.waiting import ByKey, FirstComeFirstServed

UNCAPPED = 1 << 62


@dataclass(frozen=True, slots=True)
class VllmV1Rules:
    """What differs between versions and is no flag.

    Attributes
    ----------
    lone_request_uncapped : bool
        Whether long_prefill_token_threshold does not hold for a request that is alone.
    unchunked_overflow : {"stop", "skip"}
        With chunking off, a prompt beyond the rest of the budget ends admission for the step, or is passed over (and
        those passed over come back in reversed order).
    ties_by_id : bool
        Whether requests with equal priority and arrival are ordered by their id as text (else by arrival).
    """

    lone_request_uncapped: bool = True
    unchunked_overflow: Literal["stop", "skip"] = "stop"
    ties_by_id: bool = True


@mypyc_attr(allow_interpreted_subclasses=True)
class VllmV1(IterationPolicy):
    """vLLM V1.

    Parameters
    ----------
    settings : VllmV1Settings
    kv : KVCache
        With a lag of 1 where scheduling is asynchronous and prefixes are cached.
    door : Door
    rules : VllmV1Rules
    """

    Settings: ClassVar[type[VllmV1Settings]] = VllmV1Settings
    summary: ClassVar[str] = "vLLM V1: running requests in list order, then waiting ones, one token budget"

    def __init__(self, settings: VllmV1Settings, kv: KVCache, door: Door, rules: VllmV1Rules | None = None) -> None:
        self.settings = settings
        self.step_tokens = settings.max_num_batched_tokens
        self.rules = rules or VllmV1Rules()
        self.depth = 2 if settings.async_scheduling else 1
        self._priority = settings.policy == "priority"
        queue = ByKey(self._urgency) if self._priority else FirstComeFirstServed()
        self._start(kv, door, settings.max_num_seqs, queue)
        self._cap = UNCAPPED
        self._passes_over = self.rules.unchunked_overflow == "skip" and not settings.enable_chunked_prefill

    def refusal(self, request: Request) -> str | None:
        """Return why `request` can never be served; without chunking its whole context must fit the budget."""
        reason = super().refusal(request)
        if reason is not None or self.settings.enable_chunked_prefill or not self.door.refuse_oversized:
            return reason
        output_tokens = self.door.output_tokens(request)
        if request.prompt_tokens + output_tokens - 1 <= self.step_tokens:
            return None
        return (
            f"prompt {request.prompt_tokens} + output {output_tokens} may have to be computed at once "
            f"(enable_chunked_prefill is false), max_num_batched_tokens is {self.step_tokens}"
        )

    def add(self, job: Job) -> bool:
        """Queue `job`; not only the head counts where long prompts are passed over or the queue's length is a cap."""
        changes = super().add(job)
        behind_counts = self._passes_over or self.settings.long_prefill_token_threshold_adaptive
        return changes or (behind_counts and len(self.running) < self.max_num_seqs)

    def plan(self, now_s: float) -> Plan | None:
        """Decide the next step: running requests, then waiting ones."""
        self._cap = self._prefill_cap()
        draft = self.new_draft()
        if self.running:
            self._serve_running(draft)
        if self.waiting.line and not draft.preempted:
            self.admit(draft)
        return self.seal(draft)

    def chunk(self, job: Job, draft: Draft) -> int:
        """Return the rest of what `job` is to compute, capped by threshold and budget."""
        wanted = min(job.rest_tokens, self._cap)
        draft.head_overflows = wanted > draft.budget and not self.settings.enable_chunked_prefill
        return 0 if draft.head_overflows else min(wanted, draft.budget)

    def fits(self, job: Job, hit: Hit, new: int) -> bool:
        """Return whether the first piece fits, and with scheduler_reserve_full_isl all that is known of `job`."""
        others_run = bool(self.running)
        if self.settings.scheduler_reserve_full_isl and not self.kv.can_admit(
            job, hit, job.known_tokens, others_run=others_run
        ):
            return False
        return self.kv.can_admit(job, hit, hit.tokens + new, others_run=others_run)

    def admit(self, draft: Draft) -> None:
        """Seat waiting requests until one does not fit; without chunking, old versions pass over long prompts."""
        passed_over: list[Job] = []
        while self.waiting.line and len(self.running) < self.max_num_seqs and draft.budget > 0:
            if self.admit_one(self.waiting.head, draft):
                continue
            if not (self._passes_over and draft.head_overflows):
                break
            passed_over.append(self.waiting.pop())
        for job in passed_over:
            self.waiting.put_back(job)

    def _urgency(self, job: Job) -> tuple[int, float, str]:
        request = job.request
        return request.priority, request.arrival_s, request.request_id if self.rules.ties_by_id else ""

    def _prefill_cap(self) -> int:
        settings = self.settings
        inside = len(self.running) + len(self.waiting)
        cap = settings.long_prefill_token_threshold
        if not cap or inside <= int(self.rules.lone_request_uncapped):
            return UNCAPPED
        if settings.long_prefill_token_threshold_adaptive:
            return max(cap, settings.max_num_batched_tokens // inside)
        return cap

    def _serve_running(self, draft: Draft) -> None:
        """Serve all at once from the running sums; in list order where budget or blocks are short."""
        clock, kv = self.clock, self.kv
        self.step_number = clock.steps + 1
        pieces = self._pieces(draft) if self.prefilling else []
        demand = clock.demand()
        if self.walks or pieces is None or demand + sum([need for _, _, need in pieces]) > kv.free:
            self._walk(draft)
            return
        if clock.seqs:
            if demand:
                kv.take(demand)
            draft.decodes = True
            draft.budget -= clock.seqs
        for job, new, need in pieces:
            kv.extend(job, need, job.computed_tokens + new)
            if draft.feed(job, new):
                del self.prefilling[job]

    def _pieces(self, draft: Draft) -> list[tuple[Job, int, int]] | None:
        """Return what unfinished prompts get, in tokens and new blocks.

        None if one of them might take from decodes that stand behind it.
        """
        budget = draft.budget - self.clock.seqs
        growth = self.kv.growth
        pieces = []
        for job in self.prefilling:
            wanted = min(job.rest_tokens, self._cap)
            if wanted > budget:
                if job.place < self.clock.latest_place:
                    return None
                wanted = budget
            if wanted <= 0:
                break
            before = job.computed_tokens
            pieces.append((job, wanted, growth(job.request, before, before + wanted)))
            budget -= wanted
        return pieces

    def _walk(self, draft: Draft) -> None:
        served: dict[Job, int] = {}
        for job in list(self.running):
            if draft.budget <= 0:
                break
            if job not in self.running:
                continue
            wanted = 1 if job.decoding else min(job.rest_tokens, self._cap, draft.budget)
            if job in self.ended or not wanted:
                continue
            if self._allocate(job, wanted, served, draft):
                served[job] = wanted
                draft.budget -= wanted
            elif not self._priority:
                break
        for job, new in served.items():
            if not job.decoding:
                draft.budget += new
                if draft.feed(job, new):
                    del self.prefilling[job]
        draft.left_out = [job for job in self.running if job.decoding and job not in served]
        draft.decodes = True

    def _allocate(self, job: Job, new: int, served: dict[Job, int], draft: Draft) -> bool:
        """Take the blocks `job` needs, preempting until they are there; False if it was preempted itself."""
        before = job.computed_tokens
        need = self.clock.needs_block(job) if job.decoding else self.kv.growth(job.request, before, before + new)
        while need > self.kv.free:
            victim = self._victim()
            self.preempt(victim, draft, granted=served.pop(victim, 0))
            if victim is job:
                return False
        if job.decoding:
            self.kv.take(need)
        else:
            self.kv.extend(job, need, before + new)
        return True

    def _victim(self) -> Job:
        if self._priority:
            return max(self.running, key=lambda job: (job.request.priority, job.request.arrival_s))
        return next(reversed(self.running))
