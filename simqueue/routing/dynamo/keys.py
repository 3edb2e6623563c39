"""Scenario keys of Dynamo's routers, by Dynamo's names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from simqueue.settings import Settings


class DynamoSettings(Settings):
    """Keys of `Dynamo`. Those from `use_kv_events` on are of the mode ``kv``."""

    version: Literal["1.6.1"] = Field("1.6.1", description="version of ai-dynamo whose rules are followed")
    router_mode: Literal["kv", "round-robin", "random", "power-of-two", "least-loaded"] = Field(
        "kv", description="kv: by cache and load; power-of-two, least-loaded: by the router's own requests in flight"
    )
    use_kv_events: bool = Field(
        True,
        description="whether the router knows what the caches have. false: it guesses from the prompts it has sent",
    )
    router_ttl_secs: float = Field(
        120.0,
        gt=0,
        description="without KV events, how long a prompt that was sent counts as cached",
        json_schema_extra={"unit": "s"},
    )
    overlap_score_credit: float = Field(1.0, ge=0, description="prefill blocks saved by a cached block")
    overlap_score_credit_decay: float = Field(
        0.0, ge=0, description="how fast the credit falls with prefill work that is open at the worker; 0: not at all"
    )
    prefill_load_scale: float = Field(1.0, ge=0, description="weight of prefill blocks beside decode blocks")
    decode_active_request_weight: float = Field(0.0, ge=0, description="cost of each active request, in blocks")
    router_temperature: float = Field(
        0.0, ge=0, description="0: the lowest cost; more: a draw by the softmax of the costs, scaled to 0..1"
    )
    router_queue_threshold: float | None = Field(
        None,
        ge=0,
        description="requests wait at the router, first come first served, while every worker has more prefill tokens "
        "open than this many times max_num_batched_tokens. null: they do not wait",
    )
