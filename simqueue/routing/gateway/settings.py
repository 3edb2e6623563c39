"""Scenario keys of sglang-router and vllm-router, by the products' own names where they have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from simqueue.settings import Count, Settings, invalid


class CacheAwareSettings(Settings):
    """Keys of `cache_aware`, and of policies that use the same thresholds."""

    cache_threshold: float = Field(
        0.3, ge=0, le=1, description="cache_aware: share of the text above which the tree's worker is chosen"
    )
    balance_abs_threshold: Count = Field(
        64,
        ge=0,
        description="loads are imbalanced if the highest is more than this above the lowest, and more than "
        "balance_rel_threshold times the lowest; requests in flight for cache_aware, characters for bucket",
    )
    balance_rel_threshold: float = Field(1.5, ge=0, description="see balance_abs_threshold")
    eviction_interval_secs: Count
    max_tree_size: Count
    token_loads: bool = Field(
        False,
        description="power_of_two: whether workers report the tokens that they hold, so that these are compared",
    )


class SglangSettings(CacheAwareSettings):
    """Keys of sglang-router."""

    version: Literal["0.1.9", "0.2.3", "0.2.4", "0.3.2"] = Field("0.3.2", description="version of sglang-router")
    policy: Literal["cache_aware", "round_robin", "random", "power_of_two", "manual", "bucket"] = Field(
        "cache_aware", description="how a worker is chosen; manual and bucket need version 0.3.2"
    )
    eviction_interval_secs: Count = Field(
        60,
        ge=0,
        description="cache_aware: time between two evictions; 0: never",
        json_schema_extra={"unit": "s"},
    )
    max_tree_size: Count = Field(
        2**26,
        ge=0,
        description="cache_aware: characters per worker that an eviction leaves",
        json_schema_extra={"unit": "characters"},
    )
    chars_per_token: Count = Field(4, ge=1, le=1000, description="characters of a prompt per token")
    assignment_mode: Literal["random", "min_load", "min_group"] = Field(
        "random",
        description="manual: which worker a new key gets: any, one with the fewest requests in flight, or one with the "
        "fewest keys in flight",
    )
    max_idle_secs: Count = Field(
        14400,
        ge=1,
        description="manual: time after which an unused key is forgotten",
        json_schema_extra={"unit": "s"},
    )
    bucket_adjust_interval_secs: Count = Field(
        5,
        ge=1,
        description="bucket: time between two cuts of the ranges, and time in which prompts count",
        json_schema_extra={"unit": "s"},
    )

    @model_validator(mode="after")
    def _has_policy(self) -> SglangSettings:
        _check_policy("sglang-router", self.policy, self.version, {"manual": ("0.3.2",), "bucket": ("0.3.2",)})
        return self


class VllmRouterSettings(CacheAwareSettings):
    """Keys of vllm-router."""

    version: Literal["0.1.12", "0.1.17"] = Field("0.1.17", description="version of vllm-router")
    policy: Literal[
        "cache_aware",
        "round_robin",
        "random",
        "power_of_two",
        "consistent_hash",
        "sticky_least_loaded",
        "kv_aware",
    ] = Field(
        "cache_aware",
        description="how a worker is chosen; sticky_least_loaded and kv_aware need version 0.1.17; kv_aware is without "
        "KV events",
    )
    eviction_interval_secs: Count = Field(
        120,
        ge=0,
        description="cache_aware: time between two evictions; 0: never",
        json_schema_extra={"unit": "s"},
    )
    max_tree_size: Count = Field(
        2**25,
        ge=0,
        description="cache_aware: characters per worker that an eviction leaves; a token has 8 in version 0.1.17",
        json_schema_extra={"unit": "characters"},
    )
    chars_per_token: Count = Field(
        4, ge=1, le=1000, description="characters of a prompt per token; version 0.1.12 only"
    )
    tokenized: bool = Field(
        True,
        description="cache_aware in version 0.1.17: whether workers answer with the tokens of a prompt; if not, every "
        "prompt is a miss",
    )
    session_idle_secs: Count = Field(
        7200,
        ge=1,
        description="sticky_least_loaded: time after which an unused session is forgotten",
        json_schema_extra={"unit": "s"},
    )

    @model_validator(mode="after")
    def _has_policy(self) -> VllmRouterSettings:
        newer = {"sticky_least_loaded": ("0.1.17",), "kv_aware": ("0.1.17",)}
        _check_policy("vllm-router", self.policy, self.version, newer)
        return self


def _check_policy(product: str, policy: str, version: str, only: Mapping[str, tuple[str, ...]]) -> None:
    """Reject a policy that the version does not have."""
    versions = only.get(policy, (version,))
    if version not in versions:
        text = f"{product} {version} has no such policy here; it needs version {' or '.join(versions)}"
        raise invalid(text, "policy", value=policy)
