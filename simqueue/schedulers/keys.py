"""Scenario keys of the policies, with their meaning; each policy is a module of its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from simqueue.datafiles.limits import MOST_STEP_TOKENS
from simqueue.schedulers.waiting import Order
from simqueue.settings import Settings, invalid

SglangPolicy = Literal["lpm", "dfs-weight", "fcfs", "lof", "random", "routing-key", "hrrn"]
MOST_SEATS = 1_000_000
"""Running requests at one time: far more than any server has, and few enough for a list of them."""


def _check_budget(tokens: int, seqs: int) -> None:
    """Reject a token budget that is too small for all seats."""
    if tokens < seqs:
        text = f"must be at least max_num_seqs = {seqs}, one token for each running request"
        raise invalid(text, "max_num_batched_tokens", value=tokens)


class IterationSettings(Settings):
    """Keys that every iteration-level policy has."""

    max_num_seqs: int = Field(
        256,
        ge=1,
        le=MOST_SEATS,
        description="maximum number of running requests (seats)",
        json_schema_extra={"unit": "requests"},
    )
    order: Order = Field("fcfs", description="which waiting request is admitted next; ties by arrival")


class BudgetSettings(IterationSettings):
    """Keys of policies with a token budget."""

    max_num_batched_tokens: int = Field(
        8192,
        ge=1,
        le=MOST_STEP_TOKENS,
        description="token budget per step: one token per decode, the rest for prompts",
        json_schema_extra={"unit": "tokens"},
    )

    @model_validator(mode="after")
    def _every_seat_has_a_token(self) -> BudgetSettings:
        _check_budget(self.max_num_batched_tokens, self.max_num_seqs)
        return self


class ChunkedSettings(BudgetSettings):
    """Keys of the chunked policy."""

    chunk_tokens: int | None = Field(
        None,
        ge=1,
        description="maximum number of prompt tokens per request and step; null: limited by the budget only",
        json_schema_extra={"unit": "tokens"},
    )


class ContinuousSettings(BudgetSettings):
    """Keys of the continuous policy."""

    prefill: Literal["mixed", "separate"] = Field(
        "mixed",
        description="mixed: whole prompts share a step with decodes; separate: prompts have steps of their own, before "
        "decodes",
    )


class StaticSettings(Settings):
    """Keys of the static policy."""

    max_num_seqs: int = Field(
        32,
        ge=1,
        le=MOST_SEATS,
        description="maximum number of requests per wave",
        json_schema_extra={"unit": "requests"},
    )
    order: Order = Field("fcfs", description="which waiting request enters the next wave first; ties by arrival")
    batch: Literal["dynamic", "fixed"] = Field(
        "dynamic",
        description="dynamic: a wave starts with the waiting requests; fixed: when it is full, or after wave_timeout_s",
    )
    wave_timeout_s: float | None = Field(
        None,
        ge=0,
        description="longest wait of the oldest request for a fixed wave to fill; null: no limit",
        json_schema_extra={"unit": "s"},
    )
    release: Literal["wave_end", "own_end"] = Field(
        "wave_end",
        description="when a request finishes: at the end of its wave, or with its last token",
    )
    emit: Literal["as_made", "wave_end"] = Field(
        "as_made",
        description="when tokens after the first reach the client: when they are generated, or at the end of the wave",
    )

    @model_validator(mode="after")
    def _combinations(self) -> StaticSettings:
        if self.emit == "wave_end" and self.release == "own_end":
            raise invalid("needs release: wave_end", "emit", value=self.emit)
        if self.wave_timeout_s is not None and self.batch == "dynamic":
            raise invalid("needs batch: fixed", "wave_timeout_s", value=self.wave_timeout_s)
        return self


class LlamaCppSettings(Settings):
    """Flags of the server, by its own names."""

    n_parallel: int = Field(4, ge=1, le=MOST_SEATS, description="number of slots: maximum number of running requests")
    n_batch: int = Field(
        2048, ge=1, le=MOST_STEP_TOKENS, description="token budget per step", json_schema_extra={"unit": "tokens"}
    )
    n_ctx: int | None = Field(
        None,
        ge=1,
        description="context of all slots together; null: limited by the KV pool only",
        json_schema_extra={"unit": "tokens"},
    )
    kv_unified: bool = Field(
        True, description="whether each slot can use the whole context; false: each slot has an equal share"
    )
    when_full: Literal["error", "begin_again"] | None = Field(
        None,
        description="what happens when the context is full. error: all requests in slots end with an error, as in the "
        "server; begin_again: the request that was seated last starts again later; null: error if n_ctx is given, else "
        "begin_again",
    )


class VllmV0Settings(Settings):
    """Flags of the engine, by its own names."""

    max_num_seqs: int = Field(ge=1, le=MOST_SEATS, description="maximum number of running requests")
    max_num_batched_tokens: int = Field(ge=1, le=MOST_STEP_TOKENS, description="token budget per step")
    enable_chunked_prefill: bool = Field(False, description="whether prompts are split to share a step with decodes")
    padded_prompts: bool = Field(False, description="whether prompts of a step count as long as the longest (0.2.x)")
    watermark: float = Field(0.01, ge=0, lt=1, description="share of the pool that stays free at every admission")


class VllmV1Settings(Settings):
    """Flags of the engine, by its own names. All are set once a version has given its defaults."""

    max_num_seqs: int = Field(ge=1, le=MOST_SEATS, description="maximum number of running requests")
    max_num_batched_tokens: int = Field(ge=1, le=MOST_STEP_TOKENS, description="token budget per step")
    policy: Literal["fcfs", "priority"] = Field(
        "fcfs", description="order of the queue, and which request is preempted"
    )
    enable_chunked_prefill: bool = Field(True, description="whether prompts can be cut to the rest of the budget")
    long_prefill_token_threshold: int = Field(
        0, ge=0, description="maximum number of prompt tokens per request and step; 0: limited by the budget only"
    )
    long_prefill_token_threshold_adaptive: bool = Field(
        False, description="raise the cap to max_num_batched_tokens over the requests in the system"
    )
    scheduler_reserve_full_isl: bool = Field(
        True, description="admit a request only if its whole known sequence fits the free blocks"
    )
    async_scheduling: bool = Field(False, description="plan the next step while one runs")

    @model_validator(mode="after")
    def _every_seat_has_a_token(self) -> VllmV1Settings:
        _check_budget(self.max_num_batched_tokens, self.max_num_seqs)
        return self


class SglangSettings(Settings):
    """Flags of the engine, by its own names. All are set once a version has given its defaults."""

    schedule_policy: SglangPolicy = Field("fcfs", description="order of waiting requests")
    max_running_requests: int | None = Field(
        None, ge=1, le=MOST_SEATS, description="maximum number of running requests; null: from the pool"
    )
    max_prefill_tokens: int = Field(
        16384, ge=1, le=MOST_STEP_TOKENS, description="maximum number of context tokens per prefill"
    )
    chunked_prefill_size: int = Field(
        8192, ge=-1, le=MOST_STEP_TOKENS, description="tokens of a prefill beyond which a prompt is cut; -1: never"
    )
    enable_mixed_chunk: bool = Field(False, description="whether running requests decode in the step of a prefill")
    schedule_conservativeness: float = Field(
        1.0, ge=0, description="factor of the share of outputs that is reserved for running requests"
    )
    disable_overlap_schedule: bool = Field(False, description="decide a step only when the step before has ended")
    enable_priority_scheduling: bool = Field(False, description="order by priority, and preempt for urgent requests")
    schedule_low_priority_values_first: bool = Field(False, description="whether small priorities are the urgent ones")
    priority_scheduling_preemption_threshold: int = Field(
        10, ge=0, description="difference of priorities above which a running request can be preempted"
    )
    prefill_decode_interval: int = Field(0, ge=0, description="decode steps after a prefill before the next one")
    prefill_max_requests: int | None = Field(None, ge=1, description="maximum number of requests per prefill")
    retraction_policy: Literal["length", "priority"] = Field(
        "length", description="which request is retracted first: the one with the fewest tokens, or the least urgent"
    )

    @model_validator(mode="after")
    def _priorities_need_an_order(self) -> SglangSettings:
        if self.enable_priority_scheduling and self.schedule_policy not in ("fcfs", "lof"):
            text = "must be fcfs or lof with enable_priority_scheduling"
            raise invalid(text, "schedule_policy", value=self.schedule_policy)
        if self.chunked_prefill_size == 0:
            raise invalid("must be at least 1, or -1: prompts are never cut", "chunked_prefill_size", value=0)
        return self
