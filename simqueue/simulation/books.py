"""What is read from the parts of a run when it ends."""

from __future__ import annotations

from simqueue.kvcache import KVCache, PrefixKVCache
from simqueue.simulation.recording import PrefixStatistics


def prefix_statistics(kv: KVCache) -> PrefixStatistics | None:
    """Return what a prefix cache found; None if it is none."""
    if not isinstance(kv, PrefixKVCache):
        return None
    return PrefixStatistics(kv.queried_tokens, kv.hit_tokens, kv.self_hit_tokens)
