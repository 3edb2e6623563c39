"""From one policy's settled values to the parts of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.engines import CacheRules
from simqueue.errors import InputError, about
from simqueue.hardware import check_fits, kv_pool_blocks
from simqueue.kvcache import ContiguousKVCache, KVCache, PagedKVCache, PrefixKVCache
from simqueue.scenario.resolve import EffectivePolicy
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.door import Door
from simqueue.steptime import StepTime
from simqueue.steptime.build import build as build_step_time


@dataclass(frozen=True, slots=True)
class Parts:
    """What a simulation of one policy is made of.

    Attributes
    ----------
    policy : Policy
        Fresh, with its KV cache.
    step_time : StepTime
    """

    policy: Policy
    step_time: StepTime


def build(chosen: EffectivePolicy, *, refuse_oversized: bool) -> Parts:
    """Build the parts of one policy.

    Parameters
    ----------
    chosen : EffectivePolicy
    refuse_oversized : bool
        Whether requests that the whole pool cannot hold are turned away (``unservable: reject``).

    Raises
    ------
    InputError
        If the model does not fit the GPU, or a key that is needed here is missing.
    """
    engine, longest = chosen.engine, chosen.longest_request_tokens
    kv = _kv_cache(chosen, longest)
    door = Door(longest, refuse_oversized, cuts_output=engine is not None and engine.cuts_output)
    policy = engine.make(kv, door) if engine is not None else _policy(chosen, kv, door)
    with about("step_time"):
        step_time = build_step_time(chosen.step_time, chosen.model, chosen.gpu, chosen.tensor_parallel)
    return Parts(policy, step_time)


def cache_rules(chosen: EffectivePolicy) -> CacheRules:
    """Return how a policy's KV cache behaves: as its engine says, else as the scenario does."""
    if chosen.engine is not None:
        return chosen.engine.cache
    keys = chosen.kv_cache
    return CacheRules(keys.block_size, keys.memory_share, bool(keys.prefix_caching), watermark=keys.watermark)


def _policy(chosen: EffectivePolicy, kv: KVCache, door: Door) -> Policy:
    policy_class = SCHEDULERS[chosen.scheduler]
    if kv.shares and policy_class.pads:
        raise InputError("padded waves cannot share blocks", "kv_cache", "prefix_caching", value=True)
    with about("scheduler"):
        return policy_class(chosen.settings, kv, door)  # type: ignore[call-arg] # the contract's constructor


def _kv_cache(chosen: EffectivePolicy, longest_tokens: int | None) -> KVCache:
    keys, rules = chosen.kv_cache, cache_rules(chosen)
    blocks = keys.blocks if keys.blocks != "auto" else _auto_blocks(chosen, rules)
    if chosen.model is not None and chosen.gpu is not None:
        check_fits(chosen.gpu, chosen.model, chosen.tensor_parallel, rules.memory_share)
    size, watermark_blocks = rules.block_size, int(rules.watermark * (blocks + rules.reserved_blocks))
    if keys.layout == "contiguous":
        if rules.prefix_caching:
            raise InputError("goes with kv_cache.layout: paged only", "kv_cache", "prefix_caching", value=True)
        if keys.reserve == "model_max" and longest_tokens is None:
            raise InputError("needs max_model_len; it is null", "kv_cache", "reserve", value="model_max")
        reserve_tokens = longest_tokens if keys.reserve == "model_max" else None
        return ContiguousKVCache(blocks, size, watermark_blocks, reserve_tokens)
    if not rules.prefix_caching:
        return PagedKVCache(blocks, size, watermark_blocks)
    return PrefixKVCache(
        blocks, size, watermark_blocks, unhashed_first=rules.unhashed_first, lag=rules.registration_lag
    )


def _auto_blocks(chosen: EffectivePolicy, rules: CacheRules) -> int:
    if chosen.model is None or chosen.gpu is None:
        raise InputError("needs model and gpu; give a number of blocks", "kv_cache", "blocks", value="auto")
    blocks = kv_pool_blocks(chosen.gpu, chosen.model, chosen.tensor_parallel, rules.memory_share, rules.block_size)
    return blocks - rules.reserved_blocks
