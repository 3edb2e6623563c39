"""The slots of llama.cpp's server: one request a slot, tokens of answers first, then prompts in slot order.

What is modelled: the queue before the slots, the choice of the slot that has been idle longest, one batch of up to
n_batch tokens a step, and the context that slots share or divide. What is not: prompts kept in idle slots for the next
request, the pieces of n_ubatch tokens that a batch is computed in, and the error with which the real server ends all
its requests where a shared context runs full; here the latest seated request begins again.
"""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.errors import InputError
from simqueue.kvcache.base import NO_HIT, KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Plan
from simqueue.schedulers.door import Door
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import LlamaCppSettings
from simqueue.schedulers.waiting import FirstComeFirstServed


@mypyc_attr(allow_interpreted_subclasses=True)
class LlamaCpp(IterationPolicy):
    """Slots filled from a first-come queue; a prompt is cut only where the batch is full."""

    Settings: ClassVar[type[LlamaCppSettings]] = LlamaCppSettings
    summary: ClassVar[str] = "slots of llama.cpp's server: answers first, then prompts in slot order up to n_batch"

    def __init__(self, settings: LlamaCppSettings, kv: KVCache, door: Door) -> None:
        if kv.shares or not kv.grows:
            raise InputError("llamacpp: needs kv_cache.layout: paged, without prefix_caching")
        self._start(kv, door, settings.n_parallel, FirstComeFirstServed())
        self.step_tokens = settings.n_batch
        parts = 1 if settings.kv_unified else settings.n_parallel
        self.slot_tokens = None if settings.n_ctx is None else settings.n_ctx // parts
        self._idle = list(range(settings.n_parallel))
        self._slot: dict[Job, int] = {}

    def refusal(self, request: Request) -> str | None:
        """Return why `request` can never be served: it is longer than the context of a slot, or than the pool."""
        tokens = request.prompt_tokens + request.output_tokens
        if self.slot_tokens is not None and tokens > self.slot_tokens:
            asked = f"prompt {request.prompt_tokens} + output {request.output_tokens}"
            return f"{asked} is longer than the {self.slot_tokens} tokens of context of a slot"
        return super().refusal(request)

    def plan(self, now_s: float) -> Plan | None:
        """Answers first; then every idle slot takes a request, and prompts fill the batch in slot order."""
        self._free_slots()
        draft = self.new_draft()
        self.run_decodes(draft)
        if not draft.preempted:
            self._fill_slots(draft)
        self.prefilling = dict.fromkeys(sorted(self.prefilling, key=self._slot.__getitem__))
        self.run_prefills(draft)
        return self.seal(draft)

    def chunk(self, job: Job, draft: Draft) -> int:
        """Return the rest of the prompt, as far as the batch has room."""
        return max(0, min(job.rest_tokens, draft.budget))

    def _fill_slots(self, draft: Draft) -> None:
        """Seat the queue's head while a slot is idle; its blocks are taken as its prompt is read.

        Beside others it must find room for all it has to read, or it would begin again at every step.
        """
        while self.waiting and self._idle:
            job = self.waiting.head
            if self.running and not self.kv.can_admit(job, NO_HIT, job.rest_tokens, others_run=True):
                break
            self.waiting.pop()
            self._slot[job] = self._idle.pop(0)
            job.place = self._places
            self._places += 1
            self.running[job] = None
            self.prefilling[job] = None
            draft.admitted.append((job, 0))

    def _free_slots(self) -> None:
        """Give back the slots of those who have left since the last step, in the order of their seats."""
        for job in [job for job in self._slot if job not in self.running]:
            self._idle.append(self._slot.pop(job))
