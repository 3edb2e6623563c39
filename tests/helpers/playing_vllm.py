"""vLLM's V1 scheduler on tiny scenarios, folded and step by step."""

from __future__ import annotations

from typing import Any

from simqueue.kvcache import KVCache, PagedKVCache, PrefixKVCache
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1, VllmV1Rules
from simqueue.simulation import Recording

from .playing import both_ways

ADAPTIVE = {"long_prefill_token_threshold_adaptive": True}


def play(
    asked: list[Any],
    *,
    blocks: int = 1000,
    watermark_blocks: int = 0,
    rules: VllmV1Rules | None = None,
    caching: bool = False,
    max_model_len: int | None = None,
    walks: bool = False,
    **keys: Any,
) -> Recording:
    """Play folded and step by step."""
    flags = {"max_num_seqs": 64, "max_num_batched_tokens": 2048} | keys
    lag = int(flags.get("async_scheduling", False))
    limits = RequestLimits(max_model_len, cuts_output=True)

    def made() -> VllmV1:
        kv: KVCache = PagedKVCache(blocks, 16, watermark_blocks)
        if caching:
            kv = PrefixKVCache(blocks, 16, watermark_blocks, registration_lag=lag)
        policy = VllmV1(VllmV1Settings.model_validate(flags), kv, limits, rules)
        policy.walks = walks
        return policy

    return both_ways(made, asked)
