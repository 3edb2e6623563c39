"""vLLM by version: the value of each flag on each device, and which scheduler they configure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal

from pydantic import ValidationError

from simqueue.engines.base import (
    CacheRules,
    Deployment,
    Engine,
    Maker,
    ResolvedEngine,
    deciding_key,
    reject_cache_keys,
    reject_flags,
    with_defaults,
)
from simqueue.engines.versions import facts_at
from simqueue.engines.vllm_facts import Budget, VllmFacts, VllmFlags, vllm_versions
from simqueue.errors import InputError
from simqueue.hardware import Model
from simqueue.kvcache import KVCache, KVCacheSettings, VllmFreeQueue
from simqueue.schedulers import Policy
from simqueue.schedulers.keys import VllmV0Settings, VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v0 import VllmV0
from simqueue.schedulers.vllm_v1 import VllmV1, VllmV1Rules
from simqueue.settings import Settings, problems_of

GIB = 2**30
CHUNKS_ABOVE_TOKENS: Final = 32768
"""max_model_len above which V0 enables chunked prefill by default, from 0.5.5 on."""
WIDE_BYTES: Final = 4
"""Bytes of a number that is not served as it is stored."""
COMMUNICATION_GIB: Final = 0.15
"""What several GPUs take more outside the allocator than one: 0.20 to 0.30 GiB against 0.05 to 0.12 in the logs that
``vllm.yaml`` names."""
LEAST_V0_TOKENS: Final = 2048
"""V0's default token budget without chunking is max_model_len, but at least this."""


class Vllm(Engine):
    """vLLM V0 and V1."""

    name: ClassVar[str] = "vllm"
    Settings: ClassVar[type[Settings]] = VllmFlags
    cache_flags: ClassVar[Mapping[str, str]] = {
        "memory_share": "gpu_memory_utilization",
        "prefix_caching": "enable_prefix_caching",
        "watermark": "watermark",
    }
    length_steps: ClassVar[tuple[int, ...]] = (CHUNKS_ABOVE_TOKENS,)

    def resolve(self, flags: VllmFlags, deployment: Deployment) -> ResolvedEngine:
        """Return the value of every flag of the scheduler and the KV cache."""
        facts = facts_at("vllm", vllm_versions(), flags.version)
        is_v1 = _uses_v1(flags, facts)
        if deployment.kv_cache.layout != "paged":
            raise InputError("vllm has only layout: paged", "kv_cache", "layout", value=deployment.kv_cache.layout)
        defaults = (_v1_defaults if is_v1 else _v0_defaults)(flags, facts, deployment)
        values, origins = with_defaults(flags, defaults, facts.source, deployment.kv_cache, self.cache_flags)
        if is_v1:
            _check_v1(flags, facts, values, deployment.kv_cache)
            _check_budget(values, deployment.max_model_len)
        else:
            _check_v0(flags, facts, values, deployment.kv_cache)
        return ResolvedEngine(
            title=f"vllm {facts.version} ({'V1' if is_v1 else 'V0'}, {flags.usage})",
            values=values,
            origins=origins,
            cache_origins={key: origins[flag] for key, flag in self.cache_flags.items() if flag in origins},
            cache=_cache_rules(flags, values, facts, deployment, is_v1=is_v1),
            cuts_output=is_v1 and (facts.over_length == "cut" or flags.usage == "offline"),
            make=_v1_maker(flags, facts, values) if is_v1 else _v0_maker(facts, values),
        )

    def served(self, model: Model) -> tuple[Model, str | None]:
        """Return a model of 32-bit numbers in 16 bits, which all versions do with ``dtype: auto`` (vllm/config)."""
        if model.dtype_bytes != WIDE_BYTES:
            return model, None
        note = (
            f"{model.name} is stored in 32 bits; vllm serves it in 16 (its dtype: auto); dtype: {{all: fp32}} keeps 32"
        )
        return replace(model, dtype_bytes=2), note

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per version."""
        return [
            {
                "engine": "vllm",
                "version": facts.version,
                "scheduler": facts.engine.upper() + (" (V1 opt-in)" if facts.v1 == "opt_in" else ""),
                "prefix caching": _on_off(facts.enable_prefix_caching),
                "async": _on_off(facts.async_scheduling),
                "reserve full isl": _on_off(facts.scheduler_reserve_full_isl),
                "source": facts.source,
            }
            for facts in vllm_versions().values()
        ]

    def summary(self, values: Mapping[str, Any]) -> str:
        """Return one line with version, core, usage and the flags that decide the schedule."""
        core = "" if values.get("use_v1") is None else f"V{int(values['use_v1'])}, "
        shown = ", ".join(f"{flag} {_plain(values[flag])}" for flag in _SHOWN_FLAGS if values.get(flag) is not None)
        return f"vllm {values['version']} ({core}{values['usage']}): {shown}"


_SHOWN_FLAGS: Final = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "policy",
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "scheduler_reserve_full_isl",
    "watermark",
    "async_scheduling",
    "enable_prefix_caching",
    "gpu_memory_utilization",
)

_NOT_IN_V0: Final = (
    "policy",
    "long_prefill_token_threshold",
    "long_prefill_token_threshold_adaptive",
    "scheduler_reserve_full_isl",
    "watermark",
    "async_scheduling",
    "performance_mode",
)


def _uses_v1(flags: VllmFlags, facts: VllmFacts) -> bool:
    """Return whether the V1 engine runs; InputError if this version does not have the chosen engine."""
    is_v1 = facts.engine == "v1" if flags.use_v1 is None else flags.use_v1
    if (is_v1 and facts.v1 is None) or (not is_v1 and facts.v1 == "only"):
        raise InputError(f"vllm {facts.version} has only {facts.engine.upper()}", "use_v1", value=is_v1)
    return is_v1


def _v1_defaults(flags: VllmFlags, facts: VllmFacts, deployment: Deployment) -> dict[str, Any]:
    tokens, seqs = _default_budget(flags, facts, deployment)
    return {
        "use_v1": facts.engine == "v1",
        "max_num_seqs": seqs,
        "max_num_batched_tokens": tokens,
        "policy": "fcfs",
        "enable_chunked_prefill": True,
        "long_prefill_token_threshold": 0,
        "scheduler_reserve_full_isl": facts.scheduler_reserve_full_isl,
        "watermark": facts.watermark,
        "async_scheduling": facts.async_scheduling,
        "enable_prefix_caching": facts.enable_prefix_caching,
        "gpu_memory_utilization": facts.gpu_memory_utilization,
    }


def _v0_defaults(flags: VllmFlags, facts: VllmFacts, deployment: Deployment) -> dict[str, Any]:
    longest = deployment.max_model_len or 0
    chunks = facts.chunked_prefill == "on_when_long" and longest > CHUNKS_ABOVE_TOKENS
    is_chunked = chunks if flags.enable_chunked_prefill is None else flags.enable_chunked_prefill
    return {
        "use_v1": facts.engine == "v1",
        "max_num_seqs": facts.v0_max_num_seqs,
        "max_num_batched_tokens": facts.v0_chunked_tokens if is_chunked else max(longest, LEAST_V0_TOKENS),
        "enable_chunked_prefill": chunks,
        "enable_prefix_caching": False,
        "gpu_memory_utilization": facts.gpu_memory_utilization,
    }


def _default_budget(flags: VllmFlags, facts: VllmFacts, deployment: Deployment) -> tuple[int, int]:
    """Return default token budget and running requests of V1, each adapted to the other and to max_model_len."""
    tier = _tier(facts, deployment, flags.usage)
    factor = 2 if flags.performance_mode == "throughput" else 1
    tokens, seqs, longest = tier.tokens * factor, tier.seqs * factor, deployment.max_model_len
    if longest is not None:
        is_chunked = flags.enable_chunked_prefill is not False
        tokens = min(tokens, (flags.max_num_seqs or seqs) * longest) if is_chunked else max(tokens, longest)
    return tokens, min(seqs, flags.max_num_batched_tokens or tokens)


def _tier(facts: VllmFacts, deployment: Deployment, usage: Literal["server", "offline"]) -> Budget:
    """Return the default budget on this device. A device without a known memory size counts as small, as in vLLM."""
    memory_gib = (deployment.gpu_memory_bytes or 0) / GIB
    name = (deployment.gpu_name or "").lower()
    tier = next(tier for tier in facts.tiers if tier.holds_for(name, memory_gib))
    return tier.server if usage == "server" else tier.offline


def _check_v1(flags: VllmFlags, facts: VllmFacts, values: Mapping[str, Any], keys: KVCacheSettings) -> None:
    """Check that all flags, and the cache keys with their meaning, exist at this version and are modelled."""
    exists = {
        "scheduler_reserve_full_isl": facts.scheduler_reserve_full_isl is not None,
        "watermark": facts.watermark is not None,
        "async_scheduling": facts.async_scheduling is not None,
        "long_prefill_token_threshold_adaptive": facts.threshold_adaptive,
        "performance_mode": facts.performance_mode,
    }
    missing = [flag for flag, is_there in exists.items() if not is_there]
    text = f"vllm {facts.version} has no such flag"
    reject_flags(flags, missing, text, neutral=(False, 0))
    reject_cache_keys(keys, Vllm.cache_flags, missing, text)
    if not values["enable_chunked_prefill"] and facts.unchunked_overflow is None:
        text = f"V1 of vllm {facts.version} without chunked prefill is not modelled"
        raise InputError(text, "enable_chunked_prefill", value=False)


def _check_budget(values: Mapping[str, Any], longest: int | None) -> None:
    """Check V1's token budget against max_model_len."""
    tokens = values["max_num_batched_tokens"]
    if not values["enable_chunked_prefill"] and longest is not None and tokens < longest:
        text = f"must be at least max_model_len = {longest} when enable_chunked_prefill is false"
        raise InputError(text, "max_num_batched_tokens", value=tokens)


def _check_v0(flags: VllmFlags, facts: VllmFacts, values: Mapping[str, Any], keys: KVCacheSettings) -> None:
    """Check that all flags, and the cache keys with their meaning, exist in V0 of this version and are modelled."""
    text = f"V0 of vllm {facts.version} has no such flag, or it is not modelled"
    reject_flags(flags, _NOT_IN_V0, text)
    reject_cache_keys(keys, Vllm.cache_flags, _NOT_IN_V0, text)
    if values["enable_chunked_prefill"] and facts.chunked_prefill == "never":
        raise InputError(f"vllm {facts.version} has no such flag", "enable_chunked_prefill", value=True)
    if values["enable_prefix_caching"]:
        path = ("enable_prefix_caching",) if flags.enable_prefix_caching else ("kv_cache", "prefix_caching")
        raise InputError("the prefix cache of vLLM V0 is not modelled", *path, value=True)


def _cache_rules(
    flags: VllmFlags, values: Mapping[str, Any], facts: VllmFacts, deployment: Deployment, *, is_v1: bool
) -> CacheRules:
    keys = deployment.kv_cache
    communication_gib = COMMUNICATION_GIB if deployment.tensor_parallel > 1 else 0.0
    return CacheRules(
        block_size=keys.block_size if "block_size" in keys.model_fields_set else facts.block_size,
        memory_share=values["gpu_memory_utilization"],
        prefix_caching=values["enable_prefix_caching"],
        free_queue=partial(VllmFreeQueue, blank_first=facts.unhashed_first),
        registration_lag=int(values.get("async_scheduling") or False),
        watermark=values.get("watermark") or 0.0,
        reserved_blocks=int(is_v1),
        share_key=deciding_key(flags, keys, Vllm.cache_flags, "memory_share"),
        profiled_tokens=values["max_num_batched_tokens"],
        outside_bytes=(facts.outside_gib + communication_gib) * GIB,
    )


def _v1_maker(flags: VllmFlags, facts: VllmFacts, values: Mapping[str, Any]) -> Maker:
    try:
        settings = VllmV1Settings(
            max_num_seqs=values["max_num_seqs"],
            max_num_batched_tokens=values["max_num_batched_tokens"],
            policy=values["policy"],
            enable_chunked_prefill=values["enable_chunked_prefill"],
            long_prefill_token_threshold=values["long_prefill_token_threshold"],
            long_prefill_token_threshold_adaptive=flags.long_prefill_token_threshold_adaptive,
            scheduler_reserve_full_isl=bool(values["scheduler_reserve_full_isl"]),
            async_scheduling=bool(values["async_scheduling"]),
        )
    except ValidationError as error:  # values contradict each other
        raise InputError.of(problems_of(error)) from None
    # compiled records cannot be pickled, so worker processes make the rules themselves
    rules = (facts.lone_request_uncapped, facts.unchunked_overflow or "stop", facts.ties_by_id)
    return partial(_vllm_v1, settings, rules)


def _vllm_v1(
    settings: VllmV1Settings, rules: tuple[bool, Literal["stop", "skip"], bool], kv: KVCache, limits: RequestLimits
) -> Policy:
    return VllmV1(settings, kv, limits, VllmV1Rules(*rules))


def _v0_maker(facts: VllmFacts, values: Mapping[str, Any]) -> Maker:
    settings = VllmV0Settings(
        max_num_seqs=values["max_num_seqs"],
        max_num_batched_tokens=values["max_num_batched_tokens"],
        enable_chunked_prefill=values["enable_chunked_prefill"],
        padded_prompts=facts.padded_prompts,
        watermark=facts.v0_watermark,
    )
    return partial(VllmV0, settings)


def _on_off(value: bool | None) -> str:
    return "-" if value is None else ("on" if value else "off")


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
