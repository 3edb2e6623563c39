"""Chunked prefill (Sarathi-Serve, OSDI 2024): prompts are cut so that decodes never wait for them."""

from __future__ import annotations

from typing import ClassVar

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Job
from simqueue.schedulers.door import Door
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import ChunkedSettings


@mypyc_attr(allow_interpreted_subclasses=True)
class Chunked(IterationPolicy):
    """Decodes first, one token each; then prompts in order take what the budget and their chunk allow."""

    Settings: ClassVar[type[ChunkedSettings]] = ChunkedSettings
    summary: ClassVar[str] = "decodes first, prompts in chunks beside them (Sarathi-Serve)"

    def __init__(self, settings: ChunkedSettings, kv: KVCache, door: Door) -> None:
        super().__init__(settings, kv, door)
        self.step_tokens = settings.max_num_batched_tokens
        self._chunk_tokens = settings.chunk_tokens or settings.max_num_batched_tokens

    def chunk(self, job: Job, draft: Draft) -> int:
        """Return the smallest of chunk, rest of the prompt and rest of the budget."""
        return min(self._chunk_tokens, job.rest_tokens, draft.budget)
