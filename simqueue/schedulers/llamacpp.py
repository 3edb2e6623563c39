"""The slots of llama.cpp's server: one request per slot, tokens of answers first, then prompts in slot order.

What is modelled: the queue before the slots, the choice of the slot that has been idle longest, one batch of up to
n_batch tokens per step, and the context that slots share or divide, with what happens when it is full. What is not
modelled: prompts kept in idle slots for the next request, and the pieces of n_ubatch tokens of a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.errors import InputError
from simqueue.kvcache.base import NO_HIT, KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.answers import may_admit
from simqueue.schedulers.base import Plan
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import LlamaCppSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.step import Step


@mypyc_attr(allow_interpreted_subclasses=True)
class LlamaCpp(IterationPolicy):
    """Slots filled from a first-come queue; a prompt is cut only if the batch is full."""

    Settings: ClassVar[type[LlamaCppSettings]] = LlamaCppSettings
    summary: ClassVar[str] = (
        "slots of llama.cpp's server: decodes first, then prompts in slot order, up to n_batch tokens"
    )
    steady_rules: ClassVar[tuple[str, ...]] = ("budget", "chunk", "compose", "plan", "rejection")

    def __init__(self, settings: LlamaCppSettings, kv: KVCache, limits: RequestLimits) -> None:
        if kv.shares or not kv.grows:
            raise InputError("llamacpp: needs kv_cache.layout: paged, without prefix_caching")
        self.n_batch = settings.n_batch
        self.context_tokens = settings.n_ctx
        parts = 1 if settings.kv_unified else settings.n_parallel
        self.slot_tokens = None if settings.n_ctx is None else settings.n_ctx // parts
        default = "begin_again" if settings.n_ctx is None else "error"
        self.fails_when_full = (settings.when_full or default) == "error"
        super().__init__(settings, kv, _within_slot(limits, self.slot_tokens), seats=settings.n_parallel)
        self._idle = deque(range(settings.n_parallel))
        self._slot: dict[Job, int] = {}
        self._began_again = 0

    def compose(self, step: Step) -> None:
        """Answers first; then every idle slot takes a request, and prompts fill the batch in slot order."""
        self._free_slots()
        if self.fails_when_full:
            self._fill_slots(step)
            while self.running and not self._fits(step):
                self._fail_all(step)
                self._fill_slots(step)
        else:
            while len(self.running) > 1 and self._needed_tokens(step) > self._context():
                step.preempt(self.victim(step))
        step.decode_all()
        if not (self.fails_when_full or step.preempted):
            self._fill_slots(step)
        self._sort_by_slot()
        step.continue_prefills()
        self._began_again += len(step.preempted) - step.unseated

    def plan(self, now_s: float) -> Plan | None:
        """Decide the next step; it repeats only while the context has room for all answers."""
        plan = super().plan(now_s)
        if plan is not None and plan.repeat > 1 and self.context_tokens is not None:
            decodes = self.decodes
            more = (self.context_tokens - decodes.context_tokens) // decodes.seqs + 1
            plan.repeat = min(plan.repeat, 1 + max(0, more))
        return plan

    def budget(self) -> int:
        """Return n_batch, or one token for each answer if there are more answers."""
        return max(self.n_batch, self.decodes.seqs)

    def chunk(self, job: Job, step: Step) -> int:
        """Return the rest of the prompt, as far as the batch has room."""
        return max(0, min(job.rest_tokens, step.budget))

    def rejection(self, request: Request) -> str | None:
        """Return why `request` can never be served: its prompt does not fit the context of a slot, or the pool."""
        slot = self.slot_tokens
        if slot is not None and request.prompt_tokens >= slot:
            lengths = f"prompt {request.prompt_tokens} + output {request.output_tokens}"
            return f"{lengths} is longer than the {slot} tokens of context of a slot"
        return super().rejection(request)

    def remarks(self) -> Sequence[str]:
        """Return how often a request began again, which the server does not do."""
        if not self._began_again:
            return ()
        return (
            f"the context was full, and {self._began_again} times a request began again; the server of llama.cpp ends "
            "all requests in its slots with an error instead (when_full: error)",
        )

    # -- the context ---------------------------------------------------------------------------------------------

    def _context(self) -> int:
        """Return how many tokens all slots together can hold."""
        pool = self.kv.total * self.kv.block_size
        return pool if self.context_tokens is None else min(self.context_tokens, pool)

    def _next_pieces(self, step: Step) -> list[tuple[Job, int]]:
        """Return what the unfinished prompts get of the next batch, in slot order."""
        left = step.budget - self.decodes.seqs
        pieces = []
        for job in sorted(self.prefilling, key=self._slot.__getitem__):
            if left <= 0:
                break
            new = min(job.rest_tokens, left)
            pieces.append((job, new))
            left -= new
        return pieces

    def _needed_tokens(self, step: Step) -> int:
        """Return how many tokens the slots hold after the next batch."""
        new = sum([new for _, new in self._next_pieces(step)])
        read = sum([job.computed_tokens for job in self.prefilling])
        return self.decodes.context_tokens + read + new

    def _fits(self, step: Step) -> bool:
        """Whether the context has room for the next batch."""
        blocks = self.decodes.demand()
        for job, new in self._next_pieces(step):
            before = job.computed_tokens
            blocks += self.kv.growth(job.request, before, before + new)
        return blocks <= self.kv.free and self._needed_tokens(step) <= self._context()

    def _fail_all(self, step: Step) -> None:
        """End all requests in slots with an error, as the server does when its context is full."""
        for job in list(self.running):
            step.fail(
                job, f"the context of {self._context()} tokens was full: all requests in slots ended with an error"
            )
        self._free_slots()

    # -- the slots -----------------------------------------------------------------------------------------------

    def _fill_slots(self, step: Step) -> None:
        """Give the head of the queue a seat while a slot is idle; its blocks are taken as its prompt is read.

        Where requests begin again, there must be room beside other requests for all it has to read, or it would begin
        again at every step.
        """
        while self.waiting and self._idle:
            job = self.waiting.head
            if not (self.fails_when_full or self._has_room(job)):
                break
            if not may_admit(self, job, step):
                break
            step.seat(self.waiting.pop(), cached_tokens=0)
            self._slot[job] = self._idle.popleft()

    def _has_room(self, job: Job) -> bool:
        """Whether the context has room for all that `job` has to read, beside what the other slots read."""
        if not self.running:
            return True
        if not self.kv.can_admit(job, NO_HIT, job.rest_tokens, others_run=True):
            return False
        others = self.decodes.context_tokens + sum([other.known_tokens for other in self.prefilling])
        return self.context_tokens is None or others + job.known_tokens <= self.context_tokens

    def _free_slots(self) -> None:
        """Free the slots of the requests that have left since the last step, in the order of their seats."""
        for job in [job for job in self._slot if job not in self.running]:
            self._idle.append(self._slot.pop(job))

    def _sort_by_slot(self) -> None:
        in_slot_order = sorted(self.prefilling, key=self._slot.__getitem__)
        self.prefilling.clear()
        self.prefilling.update(dict.fromkeys(in_slot_order))


def _within_slot(limits: RequestLimits, slot_tokens: int | None) -> RequestLimits:
    """Return limits with which answers end where the context of a slot does."""
    if slot_tokens is None:
        return limits
    longest = slot_tokens if limits.max_model_len is None else min(slot_tokens, limits.max_model_len)
    return RequestLimits(longest, limits.reject_oversized, cuts_output=True)
