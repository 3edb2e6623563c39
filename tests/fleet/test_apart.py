"""Replicas of an independent router, simulated apart: the same bytes as together."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simqueue as sq
from simqueue.routing import Recovery
from simqueue.simulation.apart import can_be_apart, play_share, shares, together
from simqueue.simulation.fleet_rules import FleetRules
from simqueue.traffic import Traffic

from ..helpers.both_ways import assert_same_tables
from ..helpers.profiles import examples
from .cases import INDEPENDENT, FleetCase, fleet_cases, fleet_differences, make_router


@examples(100, thorough=1000)
@given(fleet_cases(routers=INDEPENDENT, fails=False), st.integers(1, 4))
def test_apart_is_together(case: FleetCase, number: int) -> None:
    """However many shares there are: the same bytes in every table."""
    case = replace(case, router_request_s=0.0, router_latency_s=0.0, recovery=Recovery())
    rules = FleetRules(router=make_router(case.router), random=Random)
    requests, parts, options = list(case.requests), case.parts, case.options(fast=True)
    if not can_be_apart(Traffic(requests), rules):
        return
    plan = shares(requests, parts, rules, min(number, len(parts)))
    played = [play_share(share, options) for share in plan]
    made = together(requests, plan, played, type(rules.router).__name__, options)
    whole = case.play()
    if made is None:
        assert "unfinished" in whole.requests["status"]
    else:
        assert fleet_differences(made, whole) == []


@pytest.mark.parametrize("router", ["round_robin", "random"])
def test_worker_processes_change_nothing(router: str) -> None:
    """Through the whole program: two processes give the tables of one."""
    scenario = {
        "step_time": {"kind": "linear", "overhead_s": 0.005, "per_prefill_token_s": 2e-5, "per_decode_s": 1e-4},
        "kv_cache": {"blocks": 500},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 40},
            "num_requests": 200,
            "prompt_tokens": {"distribution": "lognormal", "mean": 300, "cv": 1},
            "output_tokens": {"distribution": "lognormal", "mean": 50, "cv": 1},
        },
        "policies": {"p": {"scheduler": "chunked", "fleet": {"replicas": 3, "router": router}}},
    }
    alone, together = sq.run(scenario, workers=1), sq.run(scenario, workers=2)
    assert_same_tables(alone, together)
    assert alone.to_json() == together.to_json()
