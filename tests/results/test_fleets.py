"""What the summary says about fleets: shares of ready time, imbalance, what failures cost, and groups."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import simqueue as sq
from simqueue.report.text import comparison_table
from simqueue.results.fleets import FLEET_TYPES, imbalance
from simqueue.results.stored import read_result

from .fleets import STEP_S, asked, small

TWO = {"replicas": 2, "router": "round_robin"}
MIXED = {
    "groups": {"all": {"replicas": 1}, "big": {"replicas": 2, "kv_cache": {"blocks": 30, "block_size": 16}}},
    "router": "round_robin",
}
TRAFFIC = {
    "arrivals": {"process": "poisson", "rate_rps": 6},
    "num_requests": 60,
    "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 60},
    "output_tokens": {"distribution": "uniform", "low": 1, "high": 6},
}


def row_of(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of the only policy."""
    return dict(sq.run(scenario, check=True).summary_rows[0])


def test_busy_is_of_the_ready_time_of_all_replicas() -> None:
    """Two replicas in turn: 4 + 2 steps at the first, 3 at the second, in a run of 1.25 s."""
    row = row_of(small(TWO, asked(0, 10, 4), asked(0, 40, 3), asked(1, 10, 2)))
    assert row["duration_s"] == 1.25
    assert row["gpu_busy_share"] == pytest.approx(9 * STEP_S / (2 * 1.25))
    assert row["mean_batch"] == 1
    assert row["replicas"] == 2
    assert row["imbalance_load"] == pytest.approx(6 / 4.5)
    # 10 + 3 tokens are one block of 16, and 40 + 2 are three; each pool has 10
    assert row["kv_peak_share"] == pytest.approx(4 / 20)
    assert row["imbalance_kv"] == pytest.approx(3 / 2)
    assert (row["resent"], row["lost"], row["discarded_tokens"], row["mean_router_ms"]) == (0, 0, 0, 0)


def test_time_in_which_a_replica_is_down_does_not_count() -> None:
    """It fails in the middle of its third step, and is back after half a second; its request begins again elsewhere."""
    events = [{"at_s": 0.3125, "replica": "replica-1", "event": "fail", "repair_s": 0.5}]
    fleet = {**TWO, "events": events, "in_flight": "restart"}
    row = row_of(small(fleet, asked(0, 10, 16), asked(0, 40, 4)))
    assert row["duration_s"] == 2
    # the first makes 16 tokens in 16 steps; the second 2 tokens and half a step, and then shares steps of the first
    assert row["gpu_busy_share"] == pytest.approx((16 * STEP_S + 0.3125) / (2 + 1.5))
    assert row["imbalance_load"] == pytest.approx(1 / ((1 + 0.3125 / 1.5) / 2))
    assert (row["resent"], row["lost"], row["discarded_tokens"], row["completed"]) == (1, 0, 2, 2)


def test_lost_requests_are_those_that_a_failure_ended() -> None:
    """Of two rejected requests one was at the replica that failed, and one was longer than any pool."""
    fleet = {**TWO, "events": [{"at_s": 0.3125, "replica": "replica-1", "event": "fail"}], "in_flight": "lose"}
    row = row_of(small(fleet, asked(0, 10, 16), asked(0, 40, 4), asked(0.5, 900, 4)))
    assert (row["completed"], row["rejected"], row["lost"], row["resent"]) == (1, 2, 1, 0)


def test_the_router_is_a_part_of_the_wait() -> None:
    """One request at a time takes 0.25 s at the router: the second one waits for the first."""
    fleet = {**TWO, "router_time": {"request_ms": 250}}
    row = row_of(small(fleet, asked(0, 10, 2), asked(0, 10, 2)))
    assert row["mean_router_ms"] == pytest.approx((250 + 500) / 2)


def test_one_replica_has_the_shares_of_no_fleet() -> None:
    """The columns of every summary are equal, bit for bit, behind a router too: it would fail long after the run."""
    alone = small(None, workload=TRAFFIC)
    fails = {"at_s": 1000, "replica": "replica-0", "event": "fail"}
    behind = small({"replicas": 1, "events": [fails]}, workload=TRAFFIC)
    without, found = row_of(alone), row_of(behind)
    assert not set(FLEET_TYPES) & set(without)
    assert {name: found[name] for name in without} == without
    assert (found["replicas"], found["imbalance_load"], found["imbalance_kv"]) == (1, 1, 1)


def test_policies_without_a_fleet_have_null() -> None:
    """The columns exist for all policies if one has a fleet."""
    both = small(TWO, asked(0, 10, 4))
    both["policies"]["alone"] = {"scheduler": "continuous"}
    rows = {row["policy"]: row for row in sq.run(both).summary_rows}
    assert all(rows["alone"][name] is None for name in FLEET_TYPES)
    assert list(rows["alone"])[-len(FLEET_TYPES) :] == list(FLEET_TYPES)


def test_groups_have_the_requests_of_their_replicas() -> None:
    """Statistics of each group, from the tables; the name of a group can be that of all requests."""
    result = sq.run(small(MIXED, workload=TRAFFIC), check=True)
    table, duration_s = result.requests, result.summary_rows[0]["duration_s"]
    assert [row["group"] for row in result.group_rows] == ["all", "big"]
    for row, members in zip(result.group_rows, ([0], [1, 2]), strict=True):
        own = table[table["replica"].isin(members)]
        assert row["replicas"] == len(members)
        assert row["n_requests"] == len(own) > 10
        assert row["request_throughput"] == pytest.approx(len(own) / float(str(duration_s)))
        for column, q in (("median_ttft_ms", 50), ("p99_ttft_ms", 99)):
            assert row[column] == pytest.approx(np.percentile(own["ttft_ms"], q))
        assert row["mean_tpot_ms"] == pytest.approx(own["tpot_ms"].mean())
    assert list(result.groups["group"]) == ["all", "big"]
    assert result.groups["p99_ttft_ms"].dtype == np.float64


def test_shares_of_groups_make_those_of_the_fleet() -> None:
    """Busy share and KV peak of the policy are means of the groups', weighted by ready time and by blocks."""
    result = sq.run(small(MIXED, workload=TRAFFIC))
    whole, (one, two) = result.summary_rows[0], result.group_rows
    assert whole["gpu_busy_share"] == pytest.approx((one["gpu_busy_share"] + 2 * two["gpu_busy_share"]) / 3)
    assert whole["kv_peak_share"] == pytest.approx((10 * one["kv_peak_share"] + 60 * two["kv_peak_share"]) / 70)


def test_groups_over_replications_have_intervals() -> None:
    """Counts are sums, shares are means, and percentiles are those of all requests of the group together."""
    result = sq.run(small(MIXED, workload=TRAFFIC, replications=3))
    table = result.requests
    (row, _), tables = result.group_rows, table[table["replica"] == 0]
    assert (row["replications"], row["n_requests"], row["replicas"]) == (3, len(tables), 1)
    assert row["median_ttft_ms"] == pytest.approx(np.percentile(tables["ttft_ms"], 50))
    assert row["ci_low_gpu_busy_share"] < row["gpu_busy_share"] < row["ci_high_gpu_busy_share"]


def test_groups_are_read_back(tmp_path: Path) -> None:
    """A saved result has the same groups; one without fleets says nothing about them."""
    result = sq.run(small(MIXED, workload=TRAFFIC))
    result.save(tmp_path / "out", figures=False)
    assert read_result(tmp_path / "out").group_rows == result.group_rows
    assert "groups" not in json.loads(sq.run(small(None, workload=TRAFFIC)).to_json())
    assert sq.run(small(None, workload=TRAFFIC)).groups.empty


@pytest.mark.parametrize(
    ("shares", "expected"), [([0.5, 0.5], 1), ([1.0, 0.0], 2), ([0.6, None, 0.2], 1.5), ([0.0], None), ([], None)]
)
def test_imbalance_is_the_largest_over_the_mean(shares: list[float | None], expected: float | None) -> None:
    """Replicas without a share do not count; it is undefined if nothing was used."""
    found = imbalance(shares)
    assert found is None if expected is None else found == pytest.approx(expected)


def test_the_table_shows_what_all_replicas_have_room_for() -> None:
    """The pools are added up, and the lengths of requests are a range if groups differ."""
    screen = io.StringIO()
    Console(file=screen, width=100, color_system=None).print(comparison_table(sq.run(small(MIXED, workload=TRAFFIC))))
    lines = {
        re.split("  +", line.strip())[0]: re.split("  +", line.strip())[-1] for line in screen.getvalue().splitlines()
    }
    assert lines["KV pool (tok)"] == f"{16 * (10 + 2 * 30):,}"
    assert lines["max request (tok)"] == f"{10 * 16 + 1} to {30 * 16 + 1}"
    assert lines["replicas"] == "3"
