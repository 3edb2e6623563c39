"""The load of a fleet: what its replicas can serve together."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import simqueue as sq
from simqueue.errors import InputError

BASE: dict[str, Any] = {
    "step_time": {"kind": "linear", "overhead_s": 0.005, "per_prefill_token_s": 2e-5, "per_decode_s": 1e-4},
    "kv_cache": {"blocks": 2000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 20},
        "num_requests": 400,
        "prompt_tokens": {"distribution": "lognormal", "mean": 300, "cv": 1},
        "output_tokens": {"distribution": "lognormal", "mean": 50, "cv": 1},
    },
}
SLOW = {"step_time": {"kind": "linear", "overhead_s": 0.02, "per_prefill_token_s": 8e-5, "per_decode_s": 4e-4}}


def capacity(fleet: dict[str, Any] | None, **keys: Any) -> Any:
    """Return the row of a policy."""
    policy = {"scheduler": "chunked", "max_num_seqs": 8, "fleet": fleet, **keys}
    return sq.capacity({**BASE, "policies": {"p": policy}}).iloc[0]


def test_equal_replicas_serve_in_proportion() -> None:
    """Four replicas: four times the rate, a quarter of the load, and the limits of resources likewise."""
    one, four = capacity(None), capacity({"replicas": 4, "router": "least_outstanding"})
    assert four["capacity_rps"] == pytest.approx(4 * one["capacity_rps"])
    assert four["load"] == pytest.approx(one["load"] / 4)
    assert four["limits_rps.slots"] == pytest.approx(4 * one["limits_rps.slots"])
    assert "no law for latencies" in four["note"]


def test_a_router_with_fixed_shares_is_limited_by_the_slowest() -> None:
    """In turn, each of a fast and a slow replica gets half: the slow one is full first. By load, each gives all."""
    groups = {"fast": {}, "slow": SLOW}
    fast, slow = capacity(None)["capacity_rps"], capacity(None, **SLOW)["capacity_rps"]
    assert capacity({"groups": groups, "router": "round_robin"})["capacity_rps"] == pytest.approx(2 * slow)
    assert capacity({"groups": groups, "router": "join_shortest_queue"})["capacity_rps"] == pytest.approx(fast + slow)
    weighted = {"fast": {"weight": 3}, "slow": SLOW}
    expected = 4 * min(fast / 3, slow)
    assert capacity({"groups": weighted, "router": "weighted"})["capacity_rps"] == pytest.approx(expected)


def test_the_router_is_a_server_too() -> None:
    """Work of 100 ms on each request: no more than 10 requests per second, however many replicas there are."""
    slow = capacity({"replicas": 4, "router_time": {"request_ms": 100}})
    assert (slow["capacity_rps"], slow["binding"], slow["limits_rps.router"]) == (10, "router", 10)
    assert slow["load"] == 2
    fast = capacity({"replicas": 4, "router_time": {"request_ms": 0.1}})
    assert fast["capacity_rps"] == capacity({"replicas": 4})["capacity_rps"]
    assert fast["saturated_running"] == pytest.approx(4 * capacity(None)["saturated_running"])


def test_what_is_not_known_is_said() -> None:
    """Routers that spread the work unevenly, replicas that fail, clients that limit the requests in flight."""
    assert "how evenly" in capacity({"replicas": 2, "router": "session_affinity"})["note"]
    fails = {"replicas": 2, "failures": {"mtbf_s": 100, "repair_s": 10}}
    assert "as if they were always there" in capacity(fails)["note"]


@pytest.mark.parametrize("router", ["random", "join_shortest_queue"])
@pytest.mark.parametrize(("load", "verdict"), [(0.7, False), (1.5, True)])
def test_a_fleet_is_overloaded_if_its_replicas_together_are(router: str, load: float, verdict: bool) -> None:
    """At 0.7 of what they serve together the run keeps up, at 1.5 of it not."""
    fleet = {"replicas": 4, "router": router}
    rate = load * capacity(fleet)["capacity_rps"]
    workload = {**BASE["workload"], "arrivals": {"process": "poisson", "rate_rps": rate}}
    policy = {"scheduler": "chunked", "max_num_seqs": 8, "fleet": fleet}
    summary = sq.run({**BASE, "workload": workload, "policies": {"p": policy}}).summary.iloc[0]
    assert summary["load"] == pytest.approx(load)
    assert bool(summary["overloaded"]) is verdict


def test_steps_of_several_groups_are_not_one_number() -> None:
    """Replicas that differ have no common step: what describes it is null, the capacity is not."""
    row = capacity({"groups": {"fast": {}, "slow": SLOW}})
    assert pd.isna(row["saturated_step_ms"])
    assert pd.isna(row["saturated_running"])
    assert row["capacity_rps"] > 0


def test_names_of_replicas_in_keys_of_a_router_are_checked() -> None:
    """A name that no replica and no group has is one line with the nearest one."""
    router = {"kind": "litellm", "litellm_params": {"replica_1": {"weight": 3}}}
    with pytest.raises(InputError, match=r"unknown replica or group 'replica_1'; did you mean 'replica-1'\?"):
        capacity({"replicas": 2, "router": router})
