"""Chunked prefill (Sarathi-Serve, OSDI 2024): prompts are cut so that decodes never wait for them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from simqueue.kvcache.base import KVCache
from simqueue.request import Job
from simqueue.schedulers.door import Door
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.iteration import IterationPolicy, IterationSettings
from simqueue.schedulers.registry import scheduler


class BudgetSettings(IterationSettings):
    """Keys of policies with a token budget."""

    max_num_batched_tokens: int = Field(
        8192,
        ge=1,
        description="token budget of a step: one token per decode, the rest for prompts",
        json_schema_extra={"unit": "tokens"},
    )

    @model_validator(mode="after")
    def _every_seat_has_a_token(self) -> BudgetSettings:
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise PydanticCustomError(
                "budget_below_seats",
                "max_num_batched_tokens = {tokens}: must be at least max_num_seqs = {seqs}, "
                "one token for each running request",
                {"tokens": self.max_num_batched_tokens, "seqs": self.max_num_seqs},
            )
        return self


class ChunkedSettings(BudgetSettings):
    """Keys of the chunked policy."""

    chunk_tokens: int | None = Field(
        None,
        ge=1,
        description="most prompt tokens one request gets in a step; null: only the budget limits it",
        json_schema_extra={"unit": "tokens"},
    )


@scheduler("chunked")
class Chunked(IterationPolicy):
    """Decodes first, one token each; then prompts in order take what the budget and their chunk allow."""

    Settings: ClassVar[type[ChunkedSettings]] = ChunkedSettings
    summary: ClassVar[str] = "decodes first, prompts in chunks beside them (Sarathi-Serve)"

    def __init__(self, settings: ChunkedSettings, kv: KVCache, door: Door) -> None:
        super().__init__(settings, kv, door)
        self._step_tokens = settings.max_num_batched_tokens
        self._chunk_tokens = settings.chunk_tokens or settings.max_num_batched_tokens

    @property
    def step_tokens(self) -> int:
        """Token budget of one step."""
        return self._step_tokens

    def chunk(self, job: Job, draft: Draft) -> int:
        """Return the smallest of chunk, rest of the prompt and rest of the budget."""
        return min(self._chunk_tokens, job.rest_tokens, draft.budget)
