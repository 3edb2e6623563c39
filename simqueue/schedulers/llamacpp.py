"""The slots of llama.cpp's server: one request per slot, tokens of answers first, then prompts in slot order.

What is modelled: the queue before the slots, the choice of the slot that has been idle longest, one batch of up to
n_batch tokens per step, and the context that slots share or divide. What is not modelled: prompts kept in idle slots
for the next request, the pieces of n_ubatch tokens in which a batch is computed, and the error with which the real
server ends all its requests when a shared context is full. Here the request seated last starts again.
"""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.errors import InputError
from simqueue.kvcache.base import NO_HIT, KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.answers import may_admit
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
    steady_rules: ClassVar[tuple[str, ...]] = ("budget", "chunk", "compose", "rejection")

    def __init__(self, settings: LlamaCppSettings, kv: KVCache, limits: RequestLimits) -> None:
        if kv.shares or not kv.grows:
            raise InputError("llamacpp: needs kv_cache.layout: paged, without prefix_caching")
        super().__init__(settings, kv, limits, seats=settings.n_parallel)
        self.n_batch = settings.n_batch
        parts = 1 if settings.kv_unified else settings.n_parallel
        self.slot_tokens = None if settings.n_ctx is None else settings.n_ctx // parts
        self._idle = list(range(settings.n_parallel))
        self._slot: dict[Job, int] = {}

    def compose(self, step: Step) -> None:
        """Answers first; then every idle slot takes a request, and prompts fill the batch in slot order."""
        self._free_slots()
        step.decode_all()
        if not step.preempted:
            self._fill_slots(step)
        in_slot_order = sorted(self.prefilling, key=self._slot.__getitem__)
        self.prefilling.clear()
        self.prefilling.update(dict.fromkeys(in_slot_order))
        step.continue_prefills()

    def budget(self) -> int:
        """Return n_batch, or one token for each answer if there are more answers."""
        return max(self.n_batch, self.decodes.seqs)

    def chunk(self, job: Job, step: Step) -> int:
        """Return the rest of the prompt, as far as the batch has room."""
        return max(0, min(job.rest_tokens, step.budget))

    def rejection(self, request: Request) -> str | None:
        """Return why `request` can never be served: it is longer than the context of a slot, or than the pool."""
        tokens = request.prompt_tokens + request.output_tokens
        if self.slot_tokens is not None and tokens > self.slot_tokens:
            lengths = f"prompt {request.prompt_tokens} + output {request.output_tokens}"
            return f"{lengths} is longer than the {self.slot_tokens} tokens of context of a slot"
        return super().rejection(request)

    def _fill_slots(self, step: Step) -> None:
        """Give the head of the queue a seat while a slot is idle; its blocks are taken as its prompt is read.

        Beside other requests there must be room for all it has to read, or it would start again at every step.
        """
        while self.waiting and self._idle:
            job = self.waiting.head
            if self.running and not self.kv.can_admit(job, NO_HIT, job.rest_tokens, others_run=True):
                break
            if not may_admit(self, job, step):
                break
            step.seat(self.waiting.pop(), cached_tokens=0)
            self._slot[job] = self._idle.pop(0)

    def _free_slots(self) -> None:
        """Free the slots of the requests that have left since the last step, in the order of their seats."""
        for job in [job for job in self._slot if job not in self.running]:
            self._idle.append(self._slot.pop(job))
