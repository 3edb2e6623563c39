"""Chunked prefill (Sarathi-Serve, OSDI 2024): prompts are cut so that decodes never wait for them."""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Job
from simqueue.schedulers.base import Batching
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import ChunkedSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.step import Step


@mypyc_attr(allow_interpreted_subclasses=True)
class Chunked(IterationPolicy):
    """Decodes first, one token each; then prompts in order get what the budget and their chunk allow."""

    Settings: ClassVar[type[ChunkedSettings]] = ChunkedSettings
    summary: ClassVar[str] = "decodes first, then prompts in chunks, in the same step (Sarathi-Serve)"
    steady_rules: ClassVar[tuple[str, ...]] = ("budget", "chunk")

    def __init__(self, settings: ChunkedSettings, kv: KVCache, limits: RequestLimits) -> None:
        super().__init__(settings, kv, limits)
        self.max_num_batched_tokens = settings.max_num_batched_tokens
        self.chunk_tokens = settings.chunk_tokens

    def budget(self) -> int:
        """Return max_num_batched_tokens."""
        return self.max_num_batched_tokens

    def chunk(self, job: Job, step: Step) -> int:
        """Return the smallest of chunk, rest of the prompt and rest of the budget."""
        tokens = max(0, min(job.rest_tokens, step.budget))
        return tokens if self.chunk_tokens is None else min(self.chunk_tokens, tokens)

    def batching(self) -> Batching:
        """Prompts run in chunks, together with decodes."""
        return Batching("chunked", self.seats.total, self.max_num_batched_tokens, self.chunk_tokens)
