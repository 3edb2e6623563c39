"""The tables of fleets: what each replica did, its life, the stays that failures ended, and columns of other tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import simqueue as sq
from simqueue.results.fleettables import LIFE_TYPES, REPLICA_TYPES, REQUEST_TYPES, STAY_TYPES, TABLES
from simqueue.results.stored import read_result

from .fleets import STEP_S, asked, small

FAILS = [{"at_s": 0.3125, "replica": "replica-1", "event": "fail", "repair_s": 0.5}]
RANDOM = {
    "arrivals": {"process": "poisson", "rate_rps": 20},
    "num_requests": 80,
    "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 60},
    "output_tokens": {"distribution": "uniform", "low": 1, "high": 8},
}


def failing(mode: str) -> Any:
    """Return the result of two requests, of which the second one's replica fails in its third step."""
    fleet = {"replicas": 2, "router": "round_robin", "events": FAILS, "in_flight": mode}
    return sq.run(small(fleet, asked(0, 10, 16), asked(0, 40, 4)), check=True)


@pytest.mark.parametrize(
    ("mode", "requests", "finished", "tokens"),
    [("restart", [2, 1], [2, 0], [20, 2]), ("resume", [2, 1], [2, 0], [18, 2]), ("lose", [1, 1], [1, 0], [16, 2])],
)
def test_each_replica_has_what_it_got_and_made(
    mode: str, requests: list[int], finished: list[int], tokens: list[int]
) -> None:
    """The second request makes 2 tokens before the failure; then all 4 again, the 2 that are left, or none."""
    table = failing(mode).replicas
    assert list(table["requests"]) == requests
    assert list(table["finished"]) == finished
    assert list(table["output_tokens"]) == tokens
    assert list(table["lost_stays"]) == [0, 1]
    assert list(table["failures"]) == [0, 1]


def test_shares_of_a_replica_are_of_its_ready_time() -> None:
    """The first is busy all the time; the second for the 0.3125 s before it fails, and is down for half a second."""
    table = failing("restart").replicas
    assert list(table["ready_s"]) == [2, 1.5]
    assert list(table["busy_share"]) == pytest.approx([1, 0.3125 / 1.5])
    # the first one has 1 request for 12 steps, and 2 in the 4 steps of the other request
    assert list(table["mean_batch"]) == pytest.approx([20 / 16, 1])
    assert table["kv_peak_share"].iloc[1] == pytest.approx(3 / 10)
    assert table["prefix_hit_rate"].isna().all()


def test_lives_and_stays_tell_what_happened() -> None:
    """Ready at the start, failed, and ready again; the stay that the failure ended, and what became of its tokens."""
    result = failing("restart")
    lives = [tuple(row) for row in result.lives[["time_s", "name", "state"]].to_numpy()]
    assert lives == [
        (0.0, "replica-0", "ready"),
        (0.0, "replica-1", "ready"),
        (0.3125, "replica-1", "failed"),
        (0.8125, "replica-1", "ready"),
    ]
    (stay,) = result.stays.to_dict("records")
    assert (stay["request_id"], stay["name"], stay["end_s"], stay["tokens"], stay["kept"]) == (
        *("1", "replica-1", 0.3125, 2),
        False,
    )
    assert (stay["first_scheduled_s"], stay["first_token_s"], stay["last_token_s"]) == (0, STEP_S, 2 * STEP_S)
    assert list(failing("resume").stays["kept"]) == [True]


def test_requests_say_where_they_were_and_why() -> None:
    """Columns of the fleet: group, name and reason, the time at the router, and what a failure cost."""
    fleet = {"groups": {"a": {}, "b": {}}, "router_time": {"request_ms": 250}, "in_flight": "restart"}
    fleet["events"] = [{"at_s": 0.8125, "replica": "b-0", "event": "fail"}]
    table = sq.run(small(fleet, asked(0, 10, 9), asked(0, 40, 4))).requests
    assert list(table["group"]) == ["a", "a"]
    assert list(table["replica_name"]) == ["a-0", "a-0"]
    assert list(table["router_ms"]) == [250, 500]
    assert list(table["resent"]) == [0, 1]
    assert list(table["discarded_tokens"]) == [0, 2]
    assert table["route_reason"].notna().all()


def test_policies_without_a_fleet_have_null() -> None:
    """Columns have their types for all policies, and no value for one without a fleet, which can be the first."""
    both = small({"replicas": 2}, asked(0, 10, 4))
    both["policies"] = {"alone": {"scheduler": "continuous"}, **both["policies"]}
    result = sq.run(both)
    for table, types in ((result.requests, REQUEST_TYPES), (result.steps, {"replica": "Int64"})):
        own = table[table["policy"] == "alone"]
        for name, kind in types.items():
            assert table[name].dtype == pd.Series(dtype=kind).dtype
            assert own[name].isna().all()
            assert table[name][table["policy"] == "p"].notna().all()


def test_without_a_fleet_nothing_is_added(tmp_path: Path) -> None:
    """Neither columns nor files."""
    result = sq.run(small(None, asked(0, 10, 4)))
    assert not set(REQUEST_TYPES) & set(result.requests.columns)
    assert "replica" not in result.steps
    assert result.replicas.empty
    assert list(result.replicas.columns) == list(REPLICA_TYPES)
    names = {path.name for path in result.save(tmp_path / "out", figures=False)}
    assert not names & {f"{name}.csv" for name in TABLES}


def test_tables_add_up_over_random_failures(tmp_path: Path) -> None:
    """Every request and token is counted once: at its replica, in a stay that failed, or at no replica."""
    fleet = {
        "replicas": 3,
        "router": "least_outstanding",
        "failures": {"mtbf_s": 1.5, "repair_s": 0.5},
        "in_flight": "resume",
    }
    result = sq.run(small(fleet, workload=RANDOM, replications=2), check=True)
    requests, steps = result.requests, result.steps
    assert len(result.stays) > 3
    for (number, replica), row in result.replicas.set_index(["replication", "replica"]).iterrows():
        own = requests[(requests["replication"] == number) & (requests["replica"] == replica)]
        assert row["finished"] == (own["status"] == "finished").sum()
        ran = steps[(steps["replication"] == number) & (steps["replica"] == replica)]
        busy_s, rows = ran["duration_s"], ran["decode_seqs"] + ran["prefill_seqs"]
        assert row["mean_batch"] == pytest.approx((busy_s * rows).sum() / busy_s.sum())
        assert busy_s.sum() / row["ready_s"] <= row["busy_share"] <= 1
    made = result.replicas["output_tokens"].sum()
    assert made == requests["tokens_emitted"].sum() + requests["discarded_tokens"].sum()
    failed = result.lives[result.lives["state"] == "failed"]
    assert result.replicas["failures"].sum() == len(failed)
    assert set(result.stays["end_s"]) <= set(failed["time_s"])
    result.save(tmp_path / "out", figures=False)
    stored = read_result(tmp_path / "out")
    for name, types in {"replicas": REPLICA_TYPES, "lives": LIFE_TYPES, "stays": STAY_TYPES}.items():
        pd.testing.assert_frame_equal(getattr(stored, name), getattr(result, name))
        assert list(getattr(result, name).columns) == list(types)
    assert np.isfinite(result.replicas["busy_share"]).all()
