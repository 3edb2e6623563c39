"""How many tokens a policy has room for: in its KV pool, and in one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Room:
    """Room of a policy, in tokens; None: unknown.

    Attributes
    ----------
    pool_tokens : int or None
        Tokens in the whole KV pool.
    longest_request_tokens : int or None
        Most tokens (prompt + output) of a request that can be served alone.
    """

    pool_tokens: int | None
    longest_request_tokens: int | None


def room(policy: Mapping[str, Any]) -> Room:
    """Return the room of a policy.

    Parameters
    ----------
    policy : mapping
        Its values in a resolved scenario, as JSON has them. Results of earlier versions can lack the size of the pool.
    """
    cache = policy.get("kv_cache") or {}
    blocks, block_size, limit = cache.get("blocks"), cache.get("block_size"), policy.get("max_model_len")
    if not isinstance(blocks, int) or not isinstance(block_size, int):
        return Room(None, None)
    pool_tokens = blocks * block_size
    if cache.get("layout") == "contiguous" and cache.get("reserve") == "model_max":
        return Room(pool_tokens, limit if isinstance(limit, int) and limit <= pool_tokens else None)
    limits = [limit, _slot_tokens(policy), pool_tokens + 1]  # keys and values of the last token are never stored
    return Room(pool_tokens, min(tokens for tokens in limits if isinstance(tokens, int)))


def _slot_tokens(policy: Mapping[str, Any]) -> int | None:
    """Return the tokens that a slot of llama.cpp can hold: its part of n_ctx, or all of it; None without n_ctx."""
    context = policy.get("n_ctx")
    if not isinstance(context, int):
        return None
    return context if policy.get("kv_unified", True) else context // int(policy["n_parallel"])
