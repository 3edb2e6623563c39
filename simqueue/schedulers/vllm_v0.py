"""The scheduler of vLLM's V0 engine (up to 0.10.2): prompts first, in steps of their own, or chunked beside decodes.

One sequence per request, so preemption is always by recompute; swapping (several sequences per request) is not
modelled.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Job, Request
from simqueue.schedulers.base import Batching
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import VllmV0Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.step import Step

MAX_PADDINGS = 256
"""Padding tokens that version 0.2.x accepts in a step of prompts."""


@mypyc_attr(allow_interpreted_subclasses=True)
class VllmV0(IterationPolicy):
    """vLLM V0.

    Without chunking a step is either prompts or decodes, and prompts go first. With chunking decodes go first.
    The running requests are in order of arrival, since a preempted request returns before all that arrived later.
    """

    Settings: ClassVar[type[VllmV0Settings]] = VllmV0Settings
    summary: ClassVar[str] = "vLLM V0: steps of prompts alone before steps of decodes, or chunked prefill"
    steady_rules: ClassVar[tuple[str, ...]] = ("budget", "chunk", "may_admit", "compose", "rejection")
    runs_long_prompts_alone: ClassVar[bool] = True

    def __init__(self, flags: VllmV0Settings, kv: KVCache, limits: RequestLimits) -> None:
        self.flags = flags
        self._watermark_blocks = int(flags.watermark * kv.total)
        super().__init__(flags, kv, limits, seats=flags.max_num_seqs)

    def compose(self, step: Step) -> None:
        """Chunked: decodes, then prompts. Else new requests alone if one can enter, else decodes."""
        if self.flags.enable_chunked_prefill:
            super().compose(step)
            return
        step.admit_waiting()
        if not step.admitted:
            step.decode_all()

    def budget(self) -> int:
        """Return max_num_batched_tokens."""
        return self.flags.max_num_batched_tokens

    def chunk(self, job: Job, step: Step) -> int:
        """Return what is left of the budget if chunking is on, else the whole rest or nothing."""
        if self.flags.enable_chunked_prefill:
            return max(0, min(job.rest_tokens, step.budget))
        fits = self._fits_padded(job, step) if self.flags.padded_prompts else job.rest_tokens <= step.budget
        return job.rest_tokens if fits or not self.running else 0

    def may_admit(self, job: Job, step: Step) -> bool:
        """Return whether the whole context fits, with the watermark left free, even when nothing runs."""
        hit = step.head_hit
        needed = self.kv.held(job.request, job.known_tokens) - hit.blocks + hit.idle_blocks
        return needed + self._watermark_blocks <= self.kv.free

    def rejection(self, request: Request) -> str | None:
        """Return why `request` is rejected. A prompt that can never be scheduled is, whatever the limits say."""
        flags = self.flags
        prompt = request.prompt_tokens
        if not flags.enable_chunked_prefill and prompt > flags.max_num_batched_tokens:
            return f"prompt {prompt} is longer than max_num_batched_tokens {flags.max_num_batched_tokens}"
        blocks, usable = self.kv.held(request, prompt), self.kv.total - self._watermark_blocks
        if blocks > usable:
            return f"prompt {prompt} needs {blocks} blocks, the pool has {usable} above its watermark"
        return super().rejection(request)

    def batching(self) -> Batching:
        """Prompts run in chunks, together with decodes, or whole in steps of their own."""
        flags = self.flags
        kind: Literal["chunked", "separate"] = "chunked" if flags.enable_chunked_prefill else "separate"
        return Batching(kind, flags.max_num_seqs, flags.max_num_batched_tokens, whole_context=True)

    def _fits_padded(self, job: Job, step: Step) -> bool:
        lengths = [new for _, new in step.pieces] + [job.rest_tokens]
        padded = len(lengths) * max(lengths)
        paddings = padded - sum(lengths)
        return padded <= self.flags.max_num_batched_tokens and paddings <= MAX_PADDINGS
