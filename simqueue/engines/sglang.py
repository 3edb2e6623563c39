"""SGLang by version: the value of each flag on each device, and the scheduler and cache that they configure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, ClassVar, Final

from pydantic import ValidationError

from simqueue.engines.base import (
    GIVEN,
    CacheRules,
    Deployment,
    Engine,
    ResolvedEngine,
    deciding_key,
    reject_flags,
    with_defaults,
)
from simqueue.engines.sglang_facts import ChunkTier, SglangFacts, SglangFlags, sglang_versions
from simqueue.engines.versions import facts_at
from simqueue.errors import InputError
from simqueue.hardware import Model
from simqueue.kvcache import KVCache, KVCacheSettings
from simqueue.kvcache.radixtree import RadixRules
from simqueue.schedulers import Policy
from simqueue.schedulers.keys import SglangSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.sglang import Sglang
from simqueue.schedulers.sglang_rules import SglangRules
from simqueue.settings import Settings, problems_of

MIB: Final = 2**20
MAX_PREFILL_TOKENS: Final = 16384
"""Default of all versions."""
WIDE_BYTES: Final = 4
"""Bytes of a number that is not served as it is stored."""
UNKNOWN_CHUNK: Final = 4096
UNKNOWN_SHARE: Final = 0.88
"""chunked_prefill_size and mem_fraction_static on a device of unknown memory (0.5.6 and later)."""
LEAST_MIB: Final = 10 * 1024
"""Memory that is kept free at least on GPUs with more than `LARGE_MIB`."""
LARGE_MIB: Final = 60 * 1024
_PRIORITIES: Final = (
    "enable_priority_scheduling",
    "schedule_low_priority_values_first",
    "priority_scheduling_preemption_threshold",
)
_NEWEST: Final = ("prefill_decode_interval", "prefill_max_requests", "retraction_policy")


class SglangEngine(Engine):
    """SGLang."""

    name: ClassVar[str] = "sglang"
    Settings: ClassVar[type[Settings]] = SglangFlags
    cache_flags: ClassVar[Mapping[str, str]] = {"memory_share": "mem_fraction_static", "block_size": "page_size"}

    def resolve(self, flags: SglangFlags, deployment: Deployment) -> ResolvedEngine:
        """Return the value of every flag of the scheduler and the KV cache."""
        facts = facts_at("sglang", sglang_versions(), flags.version)
        _check(flags, facts, deployment.kv_cache)
        defaults = _defaults(flags, facts, deployment)
        values, origins = with_defaults(flags, defaults, facts.source, deployment.kv_cache, self.cache_flags)
        prefixes = deployment.kv_cache.prefix_caching
        if flags.disable_radix_cache is None and prefixes is not None:
            values["disable_radix_cache"], origins["disable_radix_cache"] = not prefixes, GIVEN
        _check_chunk(values)
        cache_origins = {key: origins[flag] for key, flag in self.cache_flags.items()}
        return ResolvedEngine(
            title=f"sglang {facts.version}",
            values=values,
            origins=origins,
            cache_origins=cache_origins | {"prefix_caching": origins["disable_radix_cache"]},
            cache=_cache_rules(flags, values, facts, deployment.kv_cache),
            cuts_output=True,
            make=partial(_made, _settings(values), facts.version),
            needs_one_request=False,
        )

    def served(self, model: Model) -> tuple[Model, str | None]:
        """Return a model of 32-bit numbers in 16 bits, which all versions do with ``dtype: auto`` (configs)."""
        if model.dtype_bytes != WIDE_BYTES:
            return model, None
        name = model.name
        note = f"{name} is stored in 32 bits; sglang serves it in 16 (its dtype: auto); dtype: {{all: fp32}} keeps 32"
        return replace(model, dtype_bytes=2), note

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per version."""
        return [
            {
                "engine": "sglang",
                "version": facts.version,
                "scheduler": facts.schedule_policy,
                "prefix caching": "on",
                "async": "on" if facts.overlap else "off",
                "checked": facts.checked,
                "source": facts.source,
            }
            for facts in sglang_versions().values()
        ]

    def summary(self, values: Mapping[str, Any]) -> str:
        """Return one line with version and the flags that decide the schedule."""
        shown = ", ".join(f"{flag} {_plain(values[flag])}" for flag in _SHOWN if values.get(flag) is not None)
        return f"sglang {values['version']}: {shown}"


_SHOWN: Final = (
    "schedule_policy",
    "max_running_requests",
    "chunked_prefill_size",
    "enable_mixed_chunk",
    "schedule_conservativeness",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "page_size",
    "mem_fraction_static",
)


def _check(flags: SglangFlags, facts: SglangFacts, keys: KVCacheSettings) -> None:
    """Check that all flags exist at this version, and that keys of the cache are those of the engine."""
    if keys.layout != "paged":
        raise InputError("sglang has only layout: paged", "kv_cache", "layout", value=keys.layout)
    if keys.watermark:
        raise InputError("sglang keeps no share of the pool free", "kv_cache", "watermark", value=keys.watermark)
    if flags.schedule_policy is not None and flags.schedule_policy not in facts.policies:
        text = f"sglang {facts.version} has {', '.join(facts.policies)}"
        raise InputError(text, "schedule_policy", value=flags.schedule_policy)
    eviction = flags.radix_eviction_policy
    if eviction is not None and eviction not in facts.evictions:
        text = f"sglang {facts.version} has {', '.join(facts.evictions)}"
        raise InputError(text, "radix_eviction_policy", value=eviction)
    for flag in facts.unmodelled:
        if getattr(flags, flag):
            raise InputError(f"not modelled for sglang {facts.version}", flag, value=getattr(flags, flag))
    missing = [*(() if facts.priorities else _PRIORITIES), *(() if facts.newest_flags else _NEWEST)]
    reject_flags(flags, missing, f"sglang {facts.version} has no such flag, or it is not modelled", neutral=(0,))
    page = flags.page_size or (keys.block_size if "block_size" in keys.model_fields_set else None)
    if not facts.pages and page not in (None, 1):
        path = ("page_size",) if flags.page_size else ("kv_cache", "block_size")
        raise InputError(f"sglang {facts.version} has pages of one token only", *path, value=page)


def _check_chunk(values: Mapping[str, Any]) -> None:
    """Check that a chunk has a page: of a shorter one nothing could ever be computed."""
    chunk, page = values["chunked_prefill_size"], values["page_size"]
    if 0 < chunk < page:
        raise InputError(f"must be at least page_size = {page}, or -1", "chunked_prefill_size", value=chunk)


def _defaults(flags: SglangFlags, facts: SglangFacts, deployment: Deployment) -> dict[str, Any]:
    memory_mib = None if deployment.gpu_memory_bytes is None else deployment.gpu_memory_bytes / MIB
    tier = _tier(facts, memory_mib)
    chunk = tier.chunk if memory_mib is not None or facts.memory == "by_tp" else UNKNOWN_CHUNK
    given = flags.chunked_prefill_size
    return {
        "schedule_policy": facts.schedule_policy,
        "max_running_requests": None,
        "max_prefill_tokens": MAX_PREFILL_TOKENS,
        "chunked_prefill_size": chunk,
        "enable_mixed_chunk": False,
        "schedule_conservativeness": 1.0,
        "disable_overlap_schedule": not facts.overlap,
        "disable_radix_cache": False,
        "radix_eviction_policy": "lru",
        "page_size": 1,
        "mem_fraction_static": _share(facts, tier, memory_mib, chunk if given is None else given, flags, deployment),
        "enable_priority_scheduling": False,
        "schedule_low_priority_values_first": False,
        "priority_scheduling_preemption_threshold": 10,
        "prefill_decode_interval": None,
        "prefill_max_requests": None,
        "retraction_policy": "length",
    }


def _tier(facts: SglangFacts, memory_mib: float | None) -> ChunkTier:
    """Return the defaults by memory; a device of unknown memory counts as large."""
    for tier in facts.tiers:
        if tier.below_mib is None or (memory_mib is not None and memory_mib < tier.below_mib):
            return tier
    raise InputError(f"sglang {facts.version}: no tier for a GPU of {memory_mib} MiB")


def _share(
    facts: SglangFacts,
    tier: ChunkTier,
    memory_mib: float | None,
    chunk: int,
    flags: SglangFlags,
    deployment: Deployment,
) -> float:
    """Return the default of mem_fraction_static."""
    tensor_parallel = deployment.tensor_parallel
    if facts.memory == "by_tp":
        return next(one.share for one in facts.shares if tensor_parallel >= one.gpus)
    if memory_mib is None:
        return UNKNOWN_SHARE
    graphs = tier.graphs if tier.graphs_tp4 is None or tensor_parallel < 4 else tier.graphs_tp4
    activations = chunk if chunk > 0 else flags.max_prefill_tokens or MAX_PREFILL_TOKENS
    kept_mib = 512 + 1.5 * max(activations, 2048) + 2 * graphs + tensor_parallel / 8 * 1024
    if memory_mib > LARGE_MIB:
        kept_mib = max(kept_mib, LEAST_MIB)
    if kept_mib >= memory_mib:
        raise InputError(f"sglang keeps {kept_mib:.0f} MiB free, the GPU has {memory_mib:.0f}", "mem_fraction_static")
    return round((memory_mib - kept_mib) / memory_mib, 3)


def _cache_rules(
    flags: SglangFlags, values: Mapping[str, Any], facts: SglangFacts, keys: KVCacheSettings
) -> CacheRules:
    return CacheRules(
        block_size=values["page_size"],
        memory_share=values["mem_fraction_static"],
        prefix_caching=not values["disable_radix_cache"],
        share_key=deciding_key(flags, keys, SglangEngine.cache_flags, "memory_share"),
        tree=(values["radix_eviction_policy"], *tree_of(facts)),
    )


def _settings(values: Mapping[str, Any]) -> SglangSettings:
    known = {flag: values[flag] for flag in SglangSettings.model_fields}
    try:
        return SglangSettings(**known | {"prefill_decode_interval": known["prefill_decode_interval"] or 0})
    except ValidationError as error:  # values contradict each other
        raise InputError.of(problems_of(error)) from None


def _made(settings: SglangSettings, version: str, kv: KVCache, limits: RequestLimits) -> Policy:
    # compiled records cannot be pickled, so worker processes make the rules themselves
    return Sglang(settings, kv, limits, rules_of(sglang_versions()[version]))


def rules_of(facts: SglangFacts) -> SglangRules:
    """Return the rules of a version's scheduler."""
    return SglangRules(*[getattr(facts, field.name) for field in fields(SglangRules)])


def tree_of(facts: SglangFacts) -> tuple[Any, ...]:
    """Return the values of `RadixRules` after the first one, the order of eviction."""
    return tuple(getattr(facts, field.name) for field in fields(RadixRules)[1:])


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
