"""The best policy of a scenario: the search, what it keeps, and what it says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.experiment.best import Selection, zone_of
from simqueue.experiment.replication import replicate
from simqueue.scenario import from_mapping

from ..helpers.backwards import Backwards


def scenario(**more: Any) -> dict[str, Any]:
    """Return three numbers of slots at a load at which 2 are too few and 6 as good as 7, to within a few ms."""
    return {
        "name": "slots",
        "seed": 4,
        "step_time": {"kind": "constant", "seconds": 0.02},
        "kv_cache": {"blocks": 10_000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 16.0},
            "prompt_tokens": {"distribution": "constant", "value": 20},
            "output_tokens": {"distribution": "geometric", "mean": 8},
            "num_requests": 60,
        },
        "policies": {
            name: {"scheduler": "continuous", "max_num_seqs": slots}
            for name, slots in (("two", 2), ("six", 6), ("seven", 7))
        },
        **more,
    }


@pytest.fixture(scope="module")
def found() -> Selection:
    """Return the best by mean TTFT, where 20 ms do not matter."""
    return sq.best(scenario(), zone=20.0, workers=1)


def test_a_policy_left_out_changes_nothing_for_the_others() -> None:
    """A replication without a policy has the same requests and the same records of the others."""
    resolved = from_mapping(scenario()).resolve()
    full = replicate(resolved, 3, check=False)
    part = replicate(resolved.with_(policies=("seven",)), 3, check=False)
    assert [run.policy for run in part.runs] == ["seven"]
    assert part.requests == full.requests
    ours, theirs = part.recordings["seven"], full.recordings["seven"]
    for name, column in theirs.requests.items():
        assert np.array_equal(ours.requests[name], column, equal_nan=column.dtype.kind == "f"), name


def test_a_hopeless_policy_stops_being_run(found: Selection) -> None:
    """Two slots queue for seconds: they are dropped soon after the first stage; every run is kept and counted."""
    assert found.decided
    assert found.best in ("six", "seven")
    runs = {one.policy: one.replications for one in found.ranking}
    assert runs["two"] <= 14
    assert found.runs == sum(runs.values())
    assert found.equal_runs == 3 * runs[found.best]
    kept = [row["policy"] for row in found.result.replication_rows]
    assert {name: kept.count(name) for name in runs} == runs
    assert "two" not in found.not_told_apart


def test_differences_are_paired(found: Selection) -> None:
    """The difference of a policy to the best is the mean over the replications that the policy ran in."""
    values = found.result.replications.pivot_table(index="replication", columns="policy", values="mean_ttft_ms")
    for one in found.ranking:
        both = values[[one.policy, found.best]].dropna() if one.policy != found.best else values[[found.best]]
        assert one.mean == pytest.approx(values[one.policy].mean())
        if one.policy != found.best:
            assert one.difference == pytest.approx((both[one.policy] - both[found.best]).mean())
            assert one.replications == len(both)


def test_the_number_of_processes_changes_nothing(found: Selection) -> None:
    """Replications that come in another order give the same selection."""
    assert sq.best(scenario(), zone=20.0, workers=Backwards()).plain() == found.plain()


def test_the_largest_throughput_is_best() -> None:
    """For rates the largest is best by default, and the smallest if asked."""
    rate = sq.best(scenario(), metric="request_throughput", zone="20%", workers=1)
    assert rate.largest
    assert rate.ranking[-1].difference <= 0
    assert math.copysign(1, rate.plain()["ranking"][0]["difference"]) == 1  # 0, not -0
    assert sq.best(scenario(), metric="request_throughput", largest=False, zone="20%", workers=1).best == "two"


def test_the_command_says_what_is_known(
    command: Callable[..., Any], scenario_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table fits 80 characters with whole names; best, zone, ties and runs are lines; tables are saved."""
    monkeypatch.setenv("COLUMNS", "80")
    file, out = scenario_file(scenario()), tmp_path / "out"
    shown = command("best", file, "--zone", "20", "--workers", "1", "--out", str(out)).out
    plain = json.loads(command("best", file, "--zone", "20", "--workers", "1", "--json").out)
    for name in ("two", "six", "seven"):
        assert name in shown
    assert f"best: {plain['best']} (smaller is better)" in shown
    assert "no other policy is better than it by the indifference zone of 20.00 ms or more" in shown
    assert f"runs: {plain['runs']}; without dropping policies, the same rule would have taken" in shown
    assert "percentiles" not in shown
    rows = (out / "replications.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + plain["runs"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"zone": "0%"}, "zone = '0%': must be a number > 0, or a percentage"),
        ({"zone": "much"}, "zone = 'much'"),
        ({"metric": "mean_ttft"}, "did you mean 'mean_ttft_ms'"),
        ({"metric": "gpu_busy_share"}, "metric = gpu_busy_share: say whether larger or smaller values are better"),
        ({"max_replications": 3}, "max_replications = 3: must be a whole number >= 10"),
        ({"confidence": 1.0}, "confidence = 1: must be > 0 and < 1"),
        ({"workers": 0}, "workers = 0"),
        (  # one of 100 values is expected beyond a p99, and there are 60 requests
            {"metric": "p99_ttft_ms", "workers": 1},
            "n too small: needs at least 100 values a run; policy two in replication 0 has 60",
        ),
    ],
)
def test_wrong_parameters_are_named(options: dict[str, Any], text: str) -> None:
    """Each wrong parameter is an error before anything runs, or after the first stage if only runs can tell."""
    with pytest.raises(InputError, match=text.replace("(", r"\(")):
        sq.best(scenario(), **options)


def test_a_selection_needs_alternatives_and_chance() -> None:
    """One policy, or traffic without anything random, is no selection."""
    with pytest.raises(InputError, match="needs at least two policies"):
        sq.best(scenario(policies={"one": {"scheduler": "continuous", "max_num_seqs": 2}}))
    even = {**scenario()["workload"], "arrivals": {"process": "constant", "rate_rps": 5.0}}
    even["output_tokens"] = {"distribution": "constant", "value": 8}
    with pytest.raises(InputError, match="nothing in the traffic is random"):
        sq.best(scenario(workload=even))


def test_a_search_that_ends_too_early_decides_nothing() -> None:
    """With a zone far below the noise and ten replications, two policies are left, and it says so."""
    found = sq.best(scenario(), zone=1e-6, max_replications=10, workers=1)
    assert not found.decided
    assert found.best in ("six", "seven")


def test_a_percentile_with_too_few_values_has_no_difference(
    command: Callable[..., Any], scenario_file: Callable[..., Path]
) -> None:
    """60 requests carry a p95 and no p99; what is compared is the mean of the runs' own percentiles, and it says so."""
    file = scenario_file(scenario())
    metrics = ("--metric", "p99_ttft_ms", "--metric", "p95_ttft_ms", "--replications", "3", "--workers", "1")
    found = json.loads(command("compare", file, *metrics, "--json").out)["comparisons"]
    few, enough = found[:2], found[2:]
    assert [row["difference"] for row in few] == [None, None]
    assert {row["verdict"] for row in few} == {"n too small: 60 values in a run, at least 100 are needed"}
    requests = sq.run(scenario(replications=3), workers=1).requests.groupby(["policy", "replication"])["ttft_ms"]
    p95 = requests.quantile(0.95).groupby("policy").mean()
    assert [row["difference"] for row in enough] == pytest.approx([p95[name] - p95["two"] for name in ("six", "seven")])
    assert "percentiles: means of the runs' own" in " ".join(command("compare", file, *metrics).out.split())


def test_every_number_of_the_summary_can_be_compared() -> None:
    """Shares, counts and chosen percentiles, with the values of the tables; what is no number is refused."""
    made = scenario(replications=3, slo={"ttft_ms": 200}, summary={"percentiles": [90]})
    metrics = ["good_share", "p90_ttft_ms", "max_concurrent_requests", "overloaded_share"]
    table = sq.compare(made, metrics=metrics, workers=1).set_index(["metric", "policy"])
    rows = sq.run(made, workers=1).replications.groupby("policy").mean(numeric_only=True)
    for metric in metrics[:3]:
        assert table.loc[(metric, "six"), "difference"] == pytest.approx(rows[metric]["six"] - rows[metric]["two"])
    verdicts = {metric: table.loc[(metric, "six"), "verdict"] for metric in metrics}
    assert verdicts["good_share"] in ("better", "no difference shown")
    assert verdicts["max_concurrent_requests"] in ("lower", "no difference shown")
    assert verdicts["overloaded_share"] == "undefined in some replication"
    for name in ("binding", "replication", "p99.9_ttft_ms"):
        with pytest.raises(InputError, match="unknown metric"):
            sq.compare(made, metrics=[name])
    assert sq.best(made, metric="good_share", zone=0.05, workers=1).largest


def test_the_best_percentile_is_said_to_be_that_of_the_runs(
    command: Callable[..., Any], scenario_file: Callable[..., Path]
) -> None:
    """A line below the ranking says so."""
    line = "percentiles: means of the runs' own"
    options = ("--zone", "50%", "--workers", "1")
    shown = command("best", scenario_file(scenario()), "--metric", "p95_ttft_ms", *options).out
    assert line in " ".join(shown.split())


def test_zones() -> None:
    """A percentage is a share; a number is in the unit of the metric."""
    assert zone_of("5%") == (0.05, 0.0)
    assert zone_of(" 12.5 ") == (None, 12.5)
    assert zone_of(3) == (None, 3.0)
