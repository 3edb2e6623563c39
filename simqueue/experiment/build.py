"""From a resolved policy to what a simulation plays: a new policy with an empty KV cache."""

from __future__ import annotations

from simqueue.errors import about
from simqueue.kvcache import ContiguousKVCache, KVCache, PagedKVCache, PrefixKVCache
from simqueue.kvcache.radix import RadixKVCache
from simqueue.kvcache.radixtree import RadixRules
from simqueue.scenario.resolved import ResolvedCache, ResolvedPolicy, ResolvedScenario
from simqueue.schedulers import Policy
from simqueue.schedulers.limits import RequestLimits


def build_all(scenario: ResolvedScenario) -> dict[str, Policy]:
    """Return every policy of a scenario, new and with an empty KV cache, by name.

    Raises
    ------
    InputError
        As `build`, with the place where the key was written.
    """
    built = {}
    for policy in scenario.policies:
        with scenario.written.locating(policy.name):
            built[policy.name] = build(policy, reject_oversized=scenario.rejects_unservable)
    return built


def build(policy: ResolvedPolicy, *, reject_oversized: bool) -> Policy:
    """Return a policy, new and with an empty KV cache.

    Parameters
    ----------
    policy : ResolvedPolicy
    reject_oversized : bool
        Whether requests that need more than the whole pool are rejected (``unservable: reject``).

    Raises
    ------
    InputError
        If the policy rejects its settings or its KV cache.
    """
    cuts_output = policy.engine is not None and policy.engine.cuts_output
    limits = RequestLimits(policy.longest_request_tokens, reject_oversized, cuts_output=cuts_output)
    kv = _kv_cache(policy.kv_cache)
    with about("scheduler"):
        return policy.make(kv, limits)


def _kv_cache(cache: ResolvedCache) -> KVCache:
    rules = cache.rules
    if rules.tree is not None:
        return RadixKVCache(cache.blocks, rules.block_size, RadixRules(*rules.tree), caches=rules.prefix_caching)
    if cache.layout == "contiguous":
        reserve_tokens = None if cache.reserve_tokens == "request_max" else cache.reserve_tokens
        return ContiguousKVCache(cache.blocks, rules.block_size, cache.watermark_blocks, reserve_tokens)
    if not rules.prefix_caching:
        return PagedKVCache(cache.blocks, rules.block_size, cache.watermark_blocks)
    return PrefixKVCache(
        cache.blocks,
        rules.block_size,
        cache.watermark_blocks,
        free_queue=rules.free_queue,
        registration_lag=rules.registration_lag,
    )
