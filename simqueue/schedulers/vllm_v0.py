"""The scheduler of vLLM's V0 engine (up to 0.10.2): prompts first, in steps of their own, or chunked beside decodes.

One sequence a request, so preemption is always by recompute; swapping (several sequences a request) is not modelled.
"""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import Hit, KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Plan
from simqueue.schedulers.door import Door
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import VllmV0Settings
from simqueue.schedulers.waiting import FirstComeFirstServed

MAX_PADDINGS = 256
"""Padding tokens that version 0.2.x accepts in a step of prompts."""


@mypyc_attr(allow_interpreted_subclasses=True)
class VllmV0(IterationPolicy):
    """vLLM V0.

    Without chunking a step is either prompts or decodes, and prompts go first; with chunking decodes go first.
    The running requests stand in order of arrival, since who is preempted comes back before all that arrived later.
    """

    Settings: ClassVar[type[VllmV0Settings]] = VllmV0Settings
    summary: ClassVar[str] = "vLLM V0: steps of prompts alone before steps of decodes, or chunked prefill"

    def __init__(self, settings: VllmV0Settings, kv: KVCache, door: Door) -> None:
        self.settings = settings
        self.step_tokens = settings.max_num_batched_tokens
        self._watermark_blocks = int(settings.watermark * kv.total)
        self._start(kv, door, settings.max_num_seqs, FirstComeFirstServed())

    def refusal(self, request: Request) -> str | None:
        """Return why `request` is refused; a prompt that can never be scheduled is, whatever the door says."""
        settings = self.settings
        prompt = request.prompt_tokens
        if not settings.enable_chunked_prefill and prompt > settings.max_num_batched_tokens:
            return f"prompt {prompt} is longer than max_num_batched_tokens {settings.max_num_batched_tokens}"
        blocks, usable = self.kv.held(request, prompt), self.kv.total - self._watermark_blocks
        if blocks > usable:
            return f"prompt {prompt} needs {blocks} blocks, the pool has {usable} above its watermark"
        return super().refusal(request)

    def plan(self, now_s: float) -> Plan | None:
        """Decide the next step."""
        if self.settings.enable_chunked_prefill:
            return super().plan(now_s)
        draft = self.new_draft()
        self.admit(draft)
        if not draft.admitted:
            self.run_decodes(draft)
        return self.seal(draft)

    def chunk(self, job: Job, draft: Draft) -> int:
        """Return what is left of the budget if chunking is on, else the whole rest or nothing."""
        if self.settings.enable_chunked_prefill:
            return max(0, min(job.rest_tokens, draft.budget))
        fits = self._fits_padded if self.settings.padded_prompts else self._fits_budget
        return job.rest_tokens if fits(job, draft) else 0

    def fits(self, job: Job, hit: Hit, new: int) -> bool:
        """Return whether the whole context fits, with the watermark left free, even when nothing runs."""
        needed = self.kv.held(job.request, job.known_tokens) - hit.blocks + hit.idle_blocks
        return needed + self._watermark_blocks <= self.kv.free

    def _fits_budget(self, job: Job, draft: Draft) -> bool:
        return job.rest_tokens <= draft.budget or not self.running

    def _fits_padded(self, job: Job, draft: Draft) -> bool:
        lengths = [new for _, new in draft.pieces] + [job.rest_tokens]
        padded = len(lengths) * max(lengths)
        paddings = padded - sum(lengths)
        return (padded <= self.step_tokens and paddings <= MAX_PADDINGS) or not self.running
