"""What of a fleet is random: it differs between replications, and is the same for all policies."""

from __future__ import annotations

from typing import Any

import pytest

import simqueue as sq

REQUESTS = [{"arrival_s": 0.1 * index, "prompt_tokens": 50, "output_tokens": 20} for index in range(30)]
BASE: dict[str, Any] = {
    "step_time": {"kind": "constant", "seconds": 0.05},
    "kv_cache": {"blocks": 500},
    "workload": {"requests": REQUESTS},
    "replications": 3,
}


def play(fleet: dict[str, Any], *names: str) -> Any:
    """Run policies with the same fleet."""
    policy = {"scheduler": "chunked", "max_num_seqs": 2, "fleet": fleet}
    return sq.run({**BASE, "policies": dict.fromkeys(names or ("p",), policy)})


def test_nothing_is_random() -> None:
    """Listed requests in turn: one run, and a note that says why."""
    result = play({"replicas": 2, "router": "round_robin"})
    assert not result.replicated
    assert any("no fleet draws anything" in line for line in result.warnings)


@pytest.mark.parametrize(
    "more", [{"router": "random"}, {"failures": {"mtbf_s": 1, "repair_s": 0.5}}, {"router_order": "shuffled"}]
)
def test_what_is_random_in_a_fleet_is_replicated(more: dict[str, Any]) -> None:
    """The requests are the same in each replication, what becomes of them is not."""
    result = play({"replicas": 2, "router": "round_robin"} | more)
    assert result.replicated
    replicas = result.requests.groupby("replication")["replica"].agg(tuple)
    assert len(set(replicas)) > 1


def test_all_policies_have_the_same_failures() -> None:
    """Common random numbers: two policies with the same keys are the same run."""
    result = play({"replicas": 2, "router": "random", "failures": {"mtbf_s": 1, "repair_s": 0.5}}, "a", "b")
    tables = [result.requests[result.requests["policy"] == name].drop(columns="policy") for name in "ab"]
    assert tables[0].reset_index(drop=True).equals(tables[1].reset_index(drop=True))
