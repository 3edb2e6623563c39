"""Scenario keys of llm-d's endpoint picker, by llm-d's names."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, field_validator

from simqueue.names import unknown
from simqueue.settings import Count, Settings, invalid

SCORERS: Final = (
    "queue-scorer",
    "running-requests-size-scorer",
    "kv-cache-utilization-scorer",
    "load-aware-scorer",
    "active-request-scorer",
    "token-load-scorer",
    "prefix-cache-scorer",
    "no-hit-lru-scorer",
)
"""Names that `scorers` can have."""


class PrefixIndex(Settings):
    """Keys of the index of prompts that were sent."""

    auto_tune: bool = Field(
        True, alias="autoTune", description="whether block size and capacity are those of the replicas' own KV cache"
    )
    block_size_tokens: Count = Field(
        16, ge=1, alias="blockSizeTokens", description="tokens of a block, without autoTune"
    )
    max_prefix_blocks_to_match: Count = Field(
        256, ge=1, alias="maxPrefixBlocksToMatch", description="blocks of a prompt that are looked at"
    )
    lru_capacity_per_server: Count = Field(
        31250, ge=1, alias="lruCapacityPerServer", description="blocks kept per replica, without autoTune"
    )


class AffinityFilter(Settings):
    """Keys of prefix-cache-affinity-filter. The gate by predicted TTFT is left out: there is no predictor."""

    affinity_threshold: float = Field(
        0.8,
        ge=0,
        le=1,
        alias="affinityThreshold",
        description="share of the blocks that a replica must have to be kept",
    )
    exploration_probability: float = Field(
        0.01, ge=0, le=1, alias="explorationProbability", description="share of requests for which all are kept"
    )
    max_tokens_in_flight_penalty: Count = Field(
        0,
        ge=0,
        alias="maxTokensInFlightPenalty",
        description="all are kept if the least loaded of the cached ones has this many more tokens in flight than the "
        "least loaded of the others; 0: never",
    )


class Saturation(Settings):
    """Keys of the saturation detectors."""

    kind: Literal["utilization-detector", "concurrency-detector"] = Field(
        "utilization-detector", description="by reported queues and KV pools, or by the router's own counts"
    )
    queue_depth_threshold: Count = Field(
        5, ge=1, alias="queueDepthThreshold", description="waiting requests at which a replica is full"
    )
    kv_cache_util_threshold: float = Field(
        0.8, gt=0, le=1, alias="kvCacheUtilThreshold", description="share of the KV pool at which a replica is full"
    )
    metrics_staleness_threshold: float = Field(
        0.2,
        gt=0,
        alias="metricsStalenessThreshold",
        description="a replica whose signals are older counts as full",
        json_schema_extra={"unit": "s"},
    )
    concurrency_mode: Literal["requests", "tokens"] = Field(
        "requests", alias="concurrencyMode", description="what the concurrency detector counts"
    )
    max_concurrency: Count = Field(100, ge=1, alias="maxConcurrency", description="requests per replica")
    max_token_concurrency: Count = Field(
        1_000_000, ge=1, alias="maxTokenConcurrency", description="tokens in flight per replica"
    )


class LlmDSettings(Settings):
    """Keys of `LlmD`."""

    version: Literal["v0.8.0"] = Field("v0.8.0", description="version of llm-d's scheduler whose rules are followed")
    scorers: dict[str, float] = Field(
        {"queue-scorer": 2.0, "kv-cache-utilization-scorer": 2.0, "prefix-cache-scorer": 3.0},
        description=f"weight of each scorer; {', '.join(SCORERS)}",
    )
    picker: Literal["max-score-picker", "weighted-random-picker", "random-picker"] = Field(
        "max-score-picker",
        description="max-score-picker: the highest sum, at random among equal ones; weighted-random-picker: at random "
        "in proportion to the sums; random-picker: all alike",
    )
    prefix: PrefixIndex = Field(PrefixIndex(), description="index of the prompts that were sent to each replica")
    affinity_filter: AffinityFilter | None = Field(
        None,
        alias="prefix-cache-affinity-filter",
        description="keeps only the replicas that have most of the prompt; null: no filter",
    )
    threshold: Count = Field(128, ge=1, description="of load-aware-scorer: waiting requests at which the score is 0")
    idle_threshold: Count = Field(
        0, ge=0, alias="idleThreshold", description="of active-request-scorer: requests up to which the score is 1"
    )
    max_busy_score: float = Field(
        1.0, ge=0, le=1, alias="maxBusyScore", description="of active-request-scorer: highest score of a busy replica"
    )
    queue_threshold_tokens: Count = Field(
        4_194_304,
        ge=1,
        alias="queueThresholdTokens",
        description="of token-load-scorer: tokens in flight at which the score is 0",
    )
    saturation_detector: Saturation = Field(
        Saturation(), alias="saturationDetector", description="when the fleet counts as full"
    )
    flow_control: bool = Field(
        False,
        alias="flowControl",
        description="whether requests wait at the router while the fleet is full. false: only those with a priority "
        "above 0, which is less urgent, are refused then",
    )

    @field_validator("scorers")
    @classmethod
    def _check_scorers(cls, weights: dict[str, float]) -> dict[str, float]:
        for name, weight in weights.items():
            if name not in SCORERS:
                raise invalid(unknown("scorer", name, SCORERS))
            if weight < 0:
                raise invalid(f"must be at least 0, is {weight:g}", name)
        return weights
