"""`run --intervals` and `Result.one_run_intervals`: what a single run says, and when it says nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.theory import mg1

SCENARIO: dict[str, Any] = {
    "step_time": {"kind": "constant", "seconds": 0.1},
    "kv_cache": {"blocks": 100_000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 6.0},
        "prompt_tokens": {"distribution": "constant", "value": 10},
        "output_tokens": {"distribution": "constant", "value": 1},
        "num_requests": 5200,
    },
    "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 1}},
}


@pytest.fixture(scope="module")
def result() -> Any:
    """Return a run of M/D/1 at a load of 0.6."""
    return sq.run(SCENARIO)


@pytest.mark.parametrize("method", ["batch-means", "regenerative"])
def test_the_interval_of_a_run_contains_the_mean_of_theory(result: Any, method: str) -> None:
    """M/D/1: TTFT is the wait plus a step; the estimate is the summary's mean; the interval is no wider than it."""
    (found,) = (one for one in result.one_run_intervals(method, "one") if one.metric == "mean_ttft_ms")
    exact = 1000 * mg1(6.0, 0.1, 0.01).mean_sojourn_s
    assert found.reason == ""
    assert found.low < exact < found.high
    assert found.high - found.low < exact
    if method == "batch-means":
        assert found.estimate == pytest.approx(result.summary_rows[0]["mean_ttft_ms"])


def test_every_metric_has_an_interval_or_a_sentence(result: Any) -> None:
    """Means, percentiles and throughput; with one token per answer there is no TPOT, and a p99 needs more requests."""
    found = {one.metric: one for one in result.one_run_intervals()}
    assert {f"{kind}_{name}_ms" for kind in ("mean", "median", "p95", "p99") for name in ("ttft", "tpot", "e2el")} | {
        "request_throughput"
    } == set(found)
    for one in found.values():
        assert (one.low is None) == (one.high is None) == bool(one.reason)
    assert found["mean_tpot_ms"].estimate is None
    assert "only 52 requests are expected beyond it" in found["p99_ttft_ms"].reason
    rate = found["request_throughput"]
    assert rate.low < 6.0 < rate.high


def test_json_has_the_section_only_if_asked(result: Any) -> None:
    """A plain result is unchanged; the section is a list of plain values."""
    assert "one_run_intervals" not in json.loads(result.to_json(requests=False))
    section = json.loads(result.to_json(requests=False, intervals="regenerative"))["one_run_intervals"]
    assert {one["metric"] for one in section} == {"mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms"}
    assert {one["method"] for one in section} == {"regenerative"}


def test_short_runs_replications_and_unknown_names_are_told(
    command: Callable[..., Any], scenario_file: Callable[..., Any], result: Any
) -> None:
    """50 requests are too few; replications have better intervals; an unknown method names the known ones."""
    short = SCENARIO | {"workload": SCENARIO["workload"] | {"num_requests": 50}}
    found = sq.run(short).one_run_intervals()
    assert all("are too few" in one.reason for one in found)
    with pytest.raises(InputError, match="these replications have intervals"):
        sq.run(short | {"replications": 2}).one_run_intervals()
    with pytest.raises(InputError, match="unknown policy 'two'"):
        result.one_run_intervals(policy="two")
    path = scenario_file(short)
    code, out, err = command("run", path, "--intervals", "bootstrap")
    assert (code, out) == (2, "")
    assert "known: batch-means, regenerative" in err
    code, out, _ = command("run", path, "--intervals", "batch-means", "--no-figures", "--out", path.parent / "out")
    assert code == 0
    assert "no interval of mean_ttft_ms" in " ".join(out.split())


def test_an_overloaded_run_has_no_interval() -> None:
    """At a load of 1.2 there is no steady state to speak of."""
    overloaded = SCENARIO["workload"] | {"arrivals": {"process": "poisson", "rate_rps": 12.0}}
    found = sq.run(SCENARIO | {"workload": overloaded}).one_run_intervals()
    assert all("overloaded" in one.reason for one in found)


def test_a_run_of_which_overload_cannot_be_told_has_no_interval() -> None:
    """At a load of 0.99 nothing shows whether the queue would grow; if clients give up after 2 s, it cannot."""
    workload = SCENARIO["workload"] | {"arrivals": {"process": "poisson", "rate_rps": 9.9}}
    result = sq.run(SCENARIO | {"workload": workload}, seed=2)
    assert result.summary_rows[0]["overloaded"] is None
    assert {one.reason for one in result.one_run_intervals()} == {"it cannot be told whether the run is overloaded"}
    bounded = sq.run(SCENARIO | {"workload": workload | {"timeout_s": 2.0}}, seed=2)
    assert bounded.summary_rows[0]["bounded"] is True
    assert "it cannot be told whether the run is overloaded" not in {one.reason for one in bounded.one_run_intervals()}


def test_what_the_summary_hides_is_hidden_here_too() -> None:
    """An overloaded policy has no steady latencies, so there is no estimate of them either."""
    workload = SCENARIO["workload"] | {"arrivals": {"process": "poisson", "rate_rps": 20.0}}
    result = sq.run(SCENARIO | {"workload": workload, "warmup_s": 20.0})
    assert result.summary_rows[0]["mean_ttft_ms"] is None
    found = {one.metric: one for one in result.one_run_intervals()}
    assert found["mean_ttft_ms"].estimate is None
    assert found["request_throughput"].estimate is not None


def test_replications_are_refused_before_they_run(command: Any, scenario_file: Any) -> None:
    """The intervals of one run are asked of several: a line says so, and nothing is simulated or written."""
    file = scenario_file(SCENARIO | {"name": "several", "replications": 3})
    done = command("run", str(file), "--intervals", "batch-means")
    assert done.code == 2
    assert "several has replications, whose intervals are in the table" in done.err
    assert done.out == ""
