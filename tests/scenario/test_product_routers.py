"""Routers of products as keys of a scenario: every key comes through, and back."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from simqueue.routing import ROUTERS
from simqueue.scenario import from_mapping

from .fleets import complaint, resolved, scenario

KEYS: dict[str, dict[str, Any]] = {
    "dynamo": {"use_kv_events": False, "router_queue_threshold": 2.5, "router_temperature": 0.5},
    "litellm": {
        "routing_strategy": "latency-based-routing",
        "routing_strategy_args": {"lowest_latency_buffer": 0.5},
        "litellm_params": {"replica": {"rpm": 5}, "replica-1": {"weight": 2.0}},
    },
    "llm-d": {
        "flowControl": True,
        "scorers": {"queue-scorer": 1.0, "no-hit-lru-scorer": 2.0},
        "prefix": {"autoTune": False, "maxPrefixBlocksToMatch": 8},
        "prefix-cache-affinity-filter": {"affinityThreshold": 0.5},
        "saturationDetector": {"kind": "concurrency-detector", "maxConcurrency": 7},
        "idleThreshold": 3,
    },
    "production-stack": {"routing_logic": "prefixaware", "prefix_min_match_length": 128},
    "aibrix": {"routing_strategy": "prefix-cache", "prefix_cache_block_size": 128},
    "envoy": {"lb_policy": "MAGLEV", "table_size": 101},
    "nginx": {"method": "random two least_conn"},
}


def _has(values: Any, given: Any) -> bool:
    """Return whether all keys that were given have their values."""
    if not isinstance(given, dict):
        return bool(values == given)
    return all(key in values and _has(values[key], inner) for key, inner in given.items())


@pytest.mark.parametrize("kind", KEYS)
def test_keys_come_through_and_back(kind: str) -> None:
    """The router is made with them, under the product's names; the values are a scenario that means the same."""
    fleet = {"replicas": 2, "router": {"kind": kind, **KEYS[kind]}}
    _, found, whole = resolved(fleet)
    router = found.make_router(Random(1))
    assert type(router) is ROUTERS[kind]
    assert _has(router.settings.model_dump(by_alias=True), KEYS[kind])
    values = json.loads(json.dumps(whole.values, allow_nan=False))
    again = from_mapping(values).resolve()
    assert again.values == values
    fleet_again = again.policy("p").fleet
    assert fleet_again is not None
    assert (fleet_again.settings, fleet_again.ages) == (found.settings, found.ages)


@pytest.mark.parametrize(
    ("router", "line"),
    [
        ({"kind": "llm-d", "flowcontrol": True}, "unknown key 'flowcontrol'; did you mean 'flowControl'?"),
        ({"kind": "llm-d", "scorers": {"queue": 1}}, "unknown scorer 'queue'; did you mean 'queue-scorer'?"),
        ({"kind": "llm-d", "scorers": {"queue-scorer": -1}}, "must be at least 0, is -1"),
        ({"kind": "aibrix", "routing_strategy": "least-latency"}, "needs estimates of queue, prefill and decode times"),
        ({"kind": "envoy", "table_size": 100}, "must be a prime number, is 100"),
        ({"kind": "envoy", "minimum_ring_size": 20, "maximum_ring_size": 10}, "must be at most maximum_ring_size (10)"),
        ({"kind": "dynamo", "version": "1.6.2"}, "1.6.1"),
        ({"kind": "dynamo", "router_mode": "kw"}, "did you mean 'kv'?"),
        ({"kind": "litellm", "litellm_params": {"replica": {"weigth": 1}}}, "did you mean 'weight'?"),
        ({"kind": "nginx", "method": "least_con"}, "did you mean 'least_conn'?"),
    ],
)
def test_what_is_wrong_is_one_line(router: dict[str, Any], line: str) -> None:
    """Where, what value, what is allowed."""
    (complained,) = complaint({"replicas": 2, "router": router})
    assert complained.startswith("fleet.router")
    assert line in complained


def test_a_name_alone_means_the_defaults() -> None:
    """Each product can be named without keys."""
    for kind in KEYS:
        assert scenario({"replicas": 2, "router": kind}).resolve().policy("p").fleet is not None
