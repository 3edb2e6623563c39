"""sglang-router and vllm-router in random fleets: folding changes nothing, and every request ends once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ..helpers.profiles import examples
from .cases import FleetCase, fleet_cases, fleet_differences

GATEWAYS = ("sglang-router", "vllm-router")


@examples(25, thorough=200)
@given(fleet_cases(routers=GATEWAYS))
def test_folding_changes_nothing(case: FleetCase) -> None:
    """A router with a tree of texts and its own counts chooses the same, folded and step by step."""
    assert fleet_differences(case.play(fast=True), case.play(fast=False)) == []


def scenario(requests: list[tuple[str, float, int]], router: object) -> dict[str, Any]:
    """Return three replicas and requests by name, arrival and stream of tokens; a request takes 2 s."""
    listed = [
        {"id": name, "arrival_s": at, "prompt_tokens": 32, "output_tokens": 2, "prompt": [[stream, 0, 32]]}
        for name, at, stream in requests
    ]
    return {
        "name": "gateways",
        "step_time": {"kind": "constant", "seconds": 1.0},
        "kv_cache": {"block_size": 16, "blocks": 100, "prefix_caching": True},
        "workload": {"requests": listed},
        "policies": {"p": {"scheduler": "chunked", "fleet": {"replicas": 3, "router": router}}},
    }


SPREAD = [("a", 0.0, 1), ("b", 0.25, 2), ("c", 0.5, 3)]


@pytest.mark.parametrize("router", ["sglang-router", {"kind": "vllm-router", "version": "0.1.12"}, "vllm-router"])
def test_prompts_return_to_where_they_were(router: object, play: Any, by_id: Any) -> None:
    """Three prompts in flight at a time go to three replicas, and each again to its own, where its tokens are cached.

    Of 32 tokens, one block of 16 can be reused: the last token is always computed.
    """
    again = [("c2", 100.0, 3), ("b2", 110.0, 2), ("a2", 120.0, 1)]
    found = by_id(play(scenario([*SPREAD, *again], router)))
    assert found["replica"].to_dict() == {"a": 0, "b": 1, "c": 2, "a2": 0, "b2": 1, "c2": 2}
    assert found.loc[["a2", "b2", "c2"], "cached_tokens"].tolist() == [16, 16, 16]


@pytest.mark.parametrize("router", ["sglang-router", "vllm-router"])
def test_at_low_load_unrelated_prompts_all_go_to_one_replica(router: str, play: Any, by_id: Any) -> None:
    """Each ends before the next one arrives, so that all replicas are equally loaded: the first one is chosen."""
    found = by_id(play(scenario([(f"r{i}", 10.0 * i, i) for i in range(6)], router)))
    assert found["replica"].tolist() == [0] * 6


def test_eviction_forgets_in_simulated_time(play: Any, by_id: Any) -> None:
    """A prompt is known at 59 s and no longer at 60 s, when an eviction leaves less than it has."""
    router = {"kind": "sglang-router", "max_tree_size": 100}
    later = [("at 59", 59.0, 3), ("x", 59.5, 9), ("at 60", 60.0, 3)]
    found = by_id(play(scenario([*SPREAD, *later], router)))
    assert found["replica"].to_dict() == {"a": 0, "b": 1, "c": 2, "at 59": 2, "x": 0, "at 60": 1}
