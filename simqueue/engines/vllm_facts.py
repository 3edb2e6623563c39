"""What vLLM lets a user set, and what is known of each version: its flags, defaults and features.

The facts of each version are in ``vllm.yaml``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from simqueue.datafiles.limits import MOST_STEP_TOKENS
from simqueue.engines.versions import VersionFacts, read_versions
from simqueue.schedulers.keys import MOST_SEATS
from simqueue.settings import Settings


class VllmFlags(Settings):
    """vLLM's own flags; flags that are not given take the default of the version."""

    version: str = Field(description="version of vLLM; `simqueue list engines` lists the known ones")
    usage: Literal["server", "offline"] = Field(
        "server", description="the API server or the offline LLM class; their default budgets differ"
    )
    use_v1: bool | None = Field(None, description="whether to use the V1 engine (environment variable VLLM_USE_V1)")
    max_num_seqs: int | None = Field(
        None,
        ge=1,
        le=MOST_SEATS,
        description="maximum number of running requests",
        json_schema_extra={"unit": "requests"},
    )
    max_num_batched_tokens: int | None = Field(
        None, ge=1, le=MOST_STEP_TOKENS, description="token budget per step", json_schema_extra={"unit": "tokens"}
    )
    policy: Literal["fcfs", "priority"] = Field("fcfs", description="order of the waiting queue and of preemption")
    enable_chunked_prefill: bool | None = Field(None, description="whether prompts can be split to fit the budget")
    long_prefill_token_threshold: int = Field(
        0,
        ge=0,
        description="maximum number of prompt tokens per request and step; 0: limited by the budget only",
        json_schema_extra={"unit": "tokens"},
    )
    long_prefill_token_threshold_adaptive: bool = Field(
        False,
        description="raise the threshold to max_num_batched_tokens / requests in the system (from 0.31)",
    )
    scheduler_reserve_full_isl: bool | None = Field(
        None, description="admit a request only if all its known tokens fit into the free blocks (from 0.19)"
    )
    watermark: float | None = Field(
        None, ge=0, lt=1, description="share of the pool that admissions leave free while requests run (from 0.24)"
    )
    async_scheduling: bool | None = Field(None, description="plan the next step while a step runs (from 0.13)")
    enable_prefix_caching: bool | None = Field(
        None, description="reuse full blocks of earlier requests with the same prefix"
    )
    gpu_memory_utilization: float | None = Field(
        None, gt=0, le=1, description="share of the GPU's memory for weights and KV"
    )
    performance_mode: Literal["balanced", "throughput"] = Field(
        "balanced", description="throughput doubles the default budget and max_num_seqs (from 0.33)"
    )


class Budget(Settings):
    """Default token budget and maximum number of running requests."""

    tokens: int = Field(ge=1)
    seqs: int = Field(ge=1)


class Tier(Settings):
    """Default budgets for a kind of device."""

    min_memory_gib: float = 0.0
    named: tuple[str, ...] | None = Field(None, strict=False)
    not_named: tuple[str, ...] = Field((), strict=False)
    server: Budget
    offline: Budget

    def holds_for(self, gpu_name: str, memory_gib: float) -> bool:
        """Return whether a device belongs to this tier."""
        if memory_gib < self.min_memory_gib or any(word in gpu_name for word in self.not_named):
            return False
        return self.named is None or any(word in gpu_name for word in self.named)


class VllmFacts(VersionFacts):
    """Facts of one version; None: the version has no such feature."""

    engine: Literal["v0", "v1"]
    v1: Literal["opt_in", "default", "only"] | None = None
    block_size: int
    gpu_memory_utilization: float
    outside_gib: float
    enable_prefix_caching: bool
    chunked_prefill: Literal["never", "opt_in", "on_when_long"]
    padded_prompts: bool
    v0_max_num_seqs: int
    v0_chunked_tokens: int | None
    v0_watermark: float
    unchunked_overflow: Literal["stop", "skip"] | None = None
    lone_request_uncapped: bool = False
    threshold_adaptive: bool = False
    unhashed_first: bool = False
    ties_by_id: bool = False
    scheduler_reserve_full_isl: bool | None = None
    watermark: float | None = None
    async_scheduling: bool | None = None
    over_length: Literal["reject", "cut"] = "reject"
    performance_mode: bool = False
    tiers: tuple[Tier, ...] = Field((), strict=False)


@cache
def vllm_versions() -> dict[str, VllmFacts]:
    """Return the facts of all known versions, oldest first."""
    return read_versions(files("simqueue.engines") / "vllm.yaml", VllmFacts)
