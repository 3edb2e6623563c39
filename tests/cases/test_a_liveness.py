"""Liveness, KV pool and preemption: public bug reports restated as small scenarios."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

POLICIES = {
    "chunked": {"scheduler": "chunked", "max_num_batched_tokens": 2048},
    "continuous": {"scheduler": "continuous", "max_num_batched_tokens": 2048},
}
CANNOT_FIT = [("big", 0.0, 1002, 50), ("s1", 0.0, 6, 50), ("s2", 0.05, 6, 50)]
TEN_ALIKE = [(f"r{i}", 0.0, 64, 64) for i in range(10)]
PREEMPTED = [("A", 0.0, 16, 40), ("B", 0.0, 32, 40)]


def ms(seconds: float) -> Any:
    """Return milliseconds to compare with: sums of steps agree to 1e-9."""
    return pytest.approx(1000 * seconds, rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_case_1_what_can_never_fit_is_refused_and_the_rest_runs(
    policy: str, toy: Any, play: Any, by_id: Any, summary_of: Any
) -> None:
    """A request larger than the whole pool is rejected at once with the numbers; no request after it waits.

    Origin: vllm-project/vllm#35541, vllm-project/vllm#39734, inference-sim/inference-sim#373,
    RBLN-SW/vllm-rbln#957, where it was retried for ever and everything froze.
    """
    result = play(toy(CANNOT_FIT, {policy: POLICIES[policy]}, blocks=49))
    requests, summary = by_id(result, policy), summary_of(result, policy)
    assert requests.loc["big", "status"] == "rejected"
    assert requests.loc["big", "reject_reason"] == "prompt 1002 + output 50 needs 66 blocks, the pool has 49"
    assert requests.loc["big", "finish_s"] == requests.loc["big", "arrival_s"]
    for name in ("s1", "s2"):
        assert requests.loc[name, "status"] == "finished"
        assert requests.loc[name, "ttft_ms"] == ms(0.01)
        assert requests.loc[name, "e2el_ms"] == ms(0.5)
    assert (summary["completed"], summary["rejected"], summary["unfinished"]) == (2, 1, 0)
    assert summary["duration_s"] == pytest.approx(0.55, rel=1e-9)


def test_case_1_a_refusal_is_no_failure_of_the_run(toy: Any, command: Any, scenario_file: Any) -> None:
    """The command line ends with exit code 0 and counts the refusal (same reports as above)."""
    shown = command("run", scenario_file(toy(CANNOT_FIT, blocks=49)), "--json")
    assert shown.code == 0
    printed = json.loads(shown.out)
    assert [row["rejected"] for row in printed["summary"]] == [1]
    reasons = {row["request_id"]: row["reject_reason"] for row in printed["requests"]}
    assert reasons == {"big": "prompt 1002 + output 50 needs 66 blocks, the pool has 49", "s1": None, "s2": None}


def test_case_1_static_waves_refuse_the_same_request(toy: Any, play: Any, by_id: Any) -> None:
    """Every policy has the same door: static refuses it too, and serves the other two in waves."""
    result = play(toy(CANNOT_FIT, {"static": {"scheduler": "static"}}, blocks=49))
    assert by_id(result, "static")["status"].to_dict() == {"big": "rejected", "s1": "finished", "s2": "finished"}


def test_case_3_requests_that_fit_only_one_by_one_all_finish(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """Ten requests of eight blocks each in a pool of twelve: finite preemptions, 471 steps, end at 4.71 s.

    Origin: inference-sim/inference-sim#297, #529, #963, #1057, where eviction and recomputation went round for
    ever. The step count and the preemptions come from an independent reference.
    """
    result = play(toy(TEN_ALIKE, blocks=12))
    requests, summary = by_id(result), summary_of(result)
    assert (requests["status"] == "finished").all()
    assert requests["preemptions"].tolist() == [0, 1, 2, 1, 1, 1, 1, 1, 1, 1]
    assert result.steps["repeat"].sum() == 471
    assert summary["duration_s"] == pytest.approx(4.71, rel=1e-9)
    assert summary["kv_peak_share"] == 1.0


def test_case_3_the_oldest_running_request_always_progresses(toy: Any, play: Any, by_id: Any) -> None:
    """The first of equals is never preempted, and who came earlier finishes no later (same reports)."""
    requests = by_id(play(toy(TEN_ALIKE, blocks=12)))
    assert requests.loc["r0", "preemptions"] == 0
    assert requests.loc["r0", "e2el_ms"] == ms(0.64)
    assert requests["finish_s"].is_monotonic_increasing


def test_case_3_preemptions_print_nothing(toy: Any, command: Any, scenario_file: Any) -> None:
    """However many preemptions there are, what is printed stays one line of JSON (same reports: gigabytes of log)."""
    shown = command("run", scenario_file(toy(TEN_ALIKE, blocks=12)), "--json-summary")
    assert (shown.code, shown.err) == (0, "")
    assert len(shown.out.splitlines()) == 1
    assert json.loads(shown.out)["summary"][0]["preemptions"] == 10


def test_case_5_a_preempted_request_keeps_what_its_client_saw(toy: Any, play: Any, by_id: Any) -> None:
    """Tokens that were streamed stay streamed: TTFT is of the first one, the wait shows up as one long gap.

    Origin: inference-sim/inference-sim#1095, #1122, #1091, #1628, where TTFT was summed twice and gaps of the
    aborted run stayed in the list. The times come from an independent reference.
    """
    requests = by_id(play(toy(PREEMPTED, blocks=5)))
    assert requests["preemptions"].to_dict() == {"A": 0, "B": 1}
    assert requests["e2el_ms"].to_dict() == {"A": ms(0.40), "B": ms(0.63)}
    assert requests["ttft_ms"].to_dict() == {"A": ms(0.01), "B": ms(0.01)}
    assert requests["max_itl_ms"].to_dict() == {"A": ms(0.01), "B": ms(0.24)}
    assert requests["tokens_emitted"].to_dict() == {"A": 40, "B": 40}
    # 39 gaps that add up to what lies between the first token and the last
    assert 39 * requests.loc["B", "tpot_ms"] == ms(0.62)


@pytest.fixture
def nothing_completes(toy: Any, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Two scenarios in which no request finishes: too long for the model, and a horizon before the first token."""
    (tmp_path / "trace.csv").write_bytes(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        b"2023-11-16 18:15:46.6805900,374,44\r\n"
        b"2023-11-16 18:15:46.6810000,396,109\r\n"
    )
    too_long = toy([("r", 0.0, 65_536, 10)], max_model_len=38_544)
    short = {**toy([]), "horizon_s": 0.001}
    short["workload"] = {"trace": {"format": "azure", "path": "trace.csv"}}
    return {"too_long": too_long, "short": short}


@pytest.mark.parametrize(
    ("which", "counts", "warning"),
    [
        ("too_long", {"completed": 0, "rejected": 1, "unfinished": 0}, "none of 1 requests finished"),
        ("short", {"completed": 0, "rejected": 0, "unfinished": 2}, "none of 2 requests finished"),
    ],
)
def test_case_8_when_nothing_completes_there_is_still_a_result(
    which: str,
    counts: dict[str, int],
    warning: str,
    nothing_completes: dict[str, dict[str, Any]],
    command: Callable[..., Any],
    scenario_file: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """Counts are right, latencies are null in strict JSON, a warning says so, and all files are written; exit code 0.

    Origin: inference-sim/inference-sim#926, #193, where the metrics block was missing and parsers crashed.
    """
    file = scenario_file(nothing_completes[which])
    out = tmp_path / "out"
    shown = command("run", file, "--json", "--out", out)
    assert shown.code == 0
    printed = json.loads(shown.out, parse_constant=pytest.fail)
    (row,) = printed["summary"]
    assert {name: row[name] for name in counts} == counts
    assert all(row[f"{kind}_{latency}_ms"] is None for kind in ("mean", "p99") for latency in ("ttft", "tpot", "e2el"))
    assert any(warning in line for line in printed["warnings"])
    kept = json.loads((out / "summary.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert kept["summary"] == printed["summary"]
    for name in ("requests.parquet", "steps.parquet", "summary.csv", "scenario.json"):
        assert (out / name).stat().st_size > 0
    assert {path.suffix for path in (out / "figures").iterdir()} == {".png", ".svg"}


def test_case_8_the_table_for_people_is_printed_too(
    nothing_completes: dict[str, dict[str, Any]], command: Any, scenario_file: Any, tmp_path: Path
) -> None:
    """Without --json the comparison is shown, a warning above it, and no NaN in it (same reports)."""
    file = scenario_file(nothing_completes["too_long"])
    shown = command("run", file, "--no-figures", "--out", tmp_path / "out")
    assert shown.code == 0
    assert "none of 1 requests finished" in shown.out
    assert "chunked" in shown.out
    assert "nan" not in shown.out.lower()


def test_case_8_a_horizon_within_the_first_step_leaves_everybody_inside(toy: Any, play: Any) -> None:
    """At a horizon of 1 ms, a tenth of a step, the request is unfinished and there is no token and no gap."""
    result = play(toy([("r", 0.0, 374, 44)], horizon_s=0.001))
    assert result.requests["status"].tolist() == ["unfinished"]
    assert result.requests["first_token_s"].isna().all()
    assert result.requests["tokens_emitted"].tolist() == [0]
    assert result.summary_rows[0]["itl_count"] == 0
