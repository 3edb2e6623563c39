"""Where nothing of the traffic is random, every replication is the same run: there is one, and no interval."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.experiment.comparing import compared
from simqueue.statistics.comparison import paired

NOTE = "nothing in the traffic is random"
EVEN = {"process": "constant", "rate_rps": 6.0}


def scenario(arrivals: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return two policies on requests of one length."""
    return {
        "step_time": {"kind": "linear", "overhead_s": 0.02, "per_decode_s": 0.001, "per_prefill_token_s": 5e-5},
        "kv_cache": {"blocks": 100_000},
        "workload": {
            "arrivals": arrivals,
            "prompt_tokens": {"distribution": "constant", "value": 500},
            "output_tokens": {"distribution": "constant", "value": 20},
            "num_requests": 30,
        },
        "policies": {
            "whole": {"scheduler": "continuous", "max_num_seqs": 8},
            "chunked": {"scheduler": "chunked", "max_num_seqs": 8, "max_num_batched_tokens": 256},
        },
        **more,
    }


@pytest.mark.parametrize("more", [{"replications": 4}, {"precision": {"relative": 0.01}}], ids=["number", "precision"])
def test_replications_and_precision_make_one_run(more: dict[str, Any]) -> None:
    """The rows are those of a plain run, without columns of intervals, and one line says why."""
    once, several = sq.run(scenario(EVEN)), sq.run(scenario(EVEN, **more))
    assert len(several.runs) == len(once.runs) == 2
    assert several.summary_rows == once.summary_rows
    assert [NOTE in line for line in several.warnings if line not in once.warnings] == [True]


def test_one_random_workload_among_several_is_enough_to_replicate() -> None:
    """Replications differ if any workload draws, and do not if none does."""
    own = scenario(EVEN)["workload"]
    drawn = {**own, "arrivals": {"process": "poisson", "rate_rps": 2.0}}
    base = {key: value for key, value in scenario(EVEN, replications=2).items() if key != "workload"}
    assert len(sq.run({**base, "workloads": {"a": own, "b": own}}).runs) == 2
    assert len(sq.run({**base, "workloads": {"a": own, "b": drawn}}).runs) == 4


def test_tables_can_be_streamed_where_replications_would_be_equal(tmp_path: Path) -> None:
    """Streaming needs a single replication: that is what such a scenario has, whatever it asks for."""
    sq.run(scenario(EVEN, replications=3), stream_to=tmp_path / "even")
    assert (tmp_path / "even" / "whole" / "requests.parquet").is_file()
    with pytest.raises(InputError, match="single replication"):
        sq.run(scenario({"process": "poisson", "rate_rps": 6.0}, replications=3), stream_to=tmp_path / "drawn")


def test_compare_shows_plain_differences(command: Callable[..., Any], scenario_file: Callable[..., Path]) -> None:
    """The difference is that of the two runs; there is no interval, no p-value and no verdict."""
    file = scenario_file(scenario(EVEN))
    once = {row["policy"]: row["mean_ttft_ms"] for row in sq.run(scenario(EVEN)).summary_rows}
    shown = json.loads(command("compare", file, "--json", "--metric", "mean_ttft_ms").out)
    (row,) = shown["comparisons"]
    assert row["difference"] == once["chunked"] - once["whole"]
    undefined = ("ci_low_difference", "ci_high_difference", "ci_low_ratio", "ci_high_ratio", "p_value", "adjusted_p")
    assert [row[name] for name in (*undefined, "verdict")] == [None] * 7
    table = command("compare", file).out
    assert NOTE in table
    assert "no interval, no p-value and no verdict" in table
    for word in ("±", "better", "worse", "Holm", "[", "<0.001"):
        assert word not in table


def test_compare_of_random_traffic_still_tests(command: Callable[..., Any], scenario_file: Callable[..., Path]) -> None:
    """With Poisson arrivals there are intervals and verdicts as before."""
    file = scenario_file(scenario({"process": "poisson", "rate_rps": 6.0}))
    shown = command("compare", file, "--replications", "3").out
    assert "[" in shown
    assert "verdict" in shown
    assert NOTE not in shown


def test_an_unchanging_difference_has_no_p_value() -> None:
    """A t-test needs differences that vary: where a draw has no effect on a metric, nothing is better or worse."""
    found = paired([2.5, 3.5, 4.5], [1.0, 2.0, 3.0])
    assert found.p_value is None
    assert found.verdict("higher") == "the same difference each time"
    assert paired([1.0, 2.0], [1.0, 2.0]).verdict("higher") == "the same"
    assert paired([1.0], [2.0]).verdict("higher") == "too few replications"


def test_jitter_that_is_never_drawn_gives_no_verdict() -> None:
    """Retries with jitter draw; if no request times out, the replications are equal and no difference is tested."""
    base = scenario(EVEN, replications=3)
    base["workload"] |= {"timeout_s": 1000.0, "retry": {"limit": 1, "jitter": 0.5}}
    result = sq.run(base)
    assert len(result.runs) == 6
    (row,) = compared(result, None, ["mean_ttft_ms"])
    assert row.verdict == "the same difference each time"
    assert row.plain()["p_value"] is None


def test_rounding_is_no_difference() -> None:
    """With constant steps every token takes 10 ms under both budgets: means summed in another order are equal."""
    budgets = (("a", 64), ("b", 256))
    made = sq.compare(
        {
            "step_time": {"kind": "constant", "seconds": 0.01},
            "kv_cache": {"blocks": 500},
            "workload": {
                "users": {"count": 5, "think_s": {"distribution": "constant", "value_s": 0.2}},
                "num_requests": 50,
                "prompt_tokens": {"distribution": "constant", "value": 100},
                "output_tokens": {"distribution": "constant", "value": 30},
            },
            "policies": {
                name: {"scheduler": "chunked", "max_num_seqs": 16, "max_num_batched_tokens": budget}
                for name, budget in budgets
            },
        },
        metrics=["mean_tpot_ms"],
    )
    assert made["difference"].tolist() == [0.0]
