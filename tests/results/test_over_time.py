"""Means over time: against the transient M/M/infinity queue, by hand on a tiny case, and with their bands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.statistics.bands import band

RATE, STEP_S, MEAN_TOKENS = 5.0, 0.01, 100


def endless(replications: int, seed: int = 1) -> sq.Result:
    """Return runs of a server with a seat for each request: Poisson arrivals, geometric stays with a mean of 1 s."""
    return sq.run(
        {
            "seed": seed,
            "replications": replications,
            "step_time": {"kind": "constant", "seconds": STEP_S},
            "kv_cache": {"blocks": 1_000_000},
            "workload": {
                "arrivals": {"process": "poisson", "rate_rps": RATE},
                "prompt_tokens": {"distribution": "constant", "value": 1},
                "output_tokens": {"distribution": "geometric", "mean": MEAN_TOKENS},
                "arrivals_for_s": 4.0,
            },
            "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 1000, "max_num_batched_tokens": 100_000}},
        },
        check=False,
        workers=1,
    )


def test_a_server_for_everybody_fills_as_the_theory_says() -> None:
    """M/M/infinity from empty has rate / mu (1 - exp(-mu t)) requests on average at time t, and all of them run.

    A stay is half a step longer on average, until a step begins. The band contains the course, and nearly all of the
    intervals do; those of neighbours are alike, so that a few may miss together.
    """
    table = endless(40).means_over_time(points=17, until_s=4.0)
    number = table[table["metric"] == "in_system"]
    stay_s = MEAN_TOKENS * STEP_S + STEP_S / 2
    exact = RATE * stay_s * (1 - np.exp(-number["time_s"] / stay_s))
    known = number["low"].notna()
    assert known.sum() == 16  # at time 0 no replication has a request
    inside = ((number["low"] <= exact) & (exact <= number["high"]))[known]
    assert inside.mean() >= 0.75
    assert ((number["simultaneous_low"] <= exact) & (exact <= number["simultaneous_high"]))[known].all()
    assert (number["simultaneous_high"] > number["high"])[known].all()
    running = table[table["metric"] == "running"]["value"].to_numpy()
    assert np.abs(running - number["value"].to_numpy()).max() <= 3 * RATE * STEP_S + 0.1


def test_bands_of_a_poisson_course_cover() -> None:
    """Of 80 experiments with 20 replications of M/M/infinity, 95 % of the intervals and of whole bands are right.

    The number at time t is Poisson with mean 5 (1 - exp(-t)); at once it is simulated from its arrivals and departures.
    """
    rng = np.random.default_rng(5)
    time_s = np.linspace(0.25, 4, 16)
    exact = RATE * (1 - np.exp(-time_s))
    whole, each = 0, 0.0
    for _ in range(80):
        counts = rng.poisson(RATE * 4, 20)
        numbers = np.empty((20, 16))
        for i, n in enumerate(counts):
            arrival_s = rng.uniform(0, 4, n)
            leave_s = arrival_s + rng.exponential(1, n)
            numbers[i] = ((arrival_s[:, None] <= time_s) & (time_s < leave_s[:, None])).sum(axis=0)
        found = band(numbers, np.ones((20, 16)))
        each += np.mean([one.low <= mean <= one.high for one, mean in zip(found, exact, strict=True)])  # type: ignore[operator]
        whole += all(
            one.simultaneous_low <= mean <= one.simultaneous_high  # type: ignore[operator]
            for one, mean in zip(found, exact, strict=True)
        )
    assert each / 80 >= 0.93
    assert whole / 80 >= 0.95 - 3 * (0.95 * 0.05 / 80) ** 0.5


def test_a_ratio_is_that_of_the_sums() -> None:
    """TTFT by arrival is over all requests: one of 10 and three of 2 have a mean of 4, not of 6."""
    (found,) = band(np.array([[10.0], [6.0]]), np.array([[1.0], [3.0]]))
    assert found.value == 4.0
    (empty,) = band(np.zeros((3, 1)), np.zeros((3, 1)))
    assert (empty.value, empty.low, empty.simultaneous_high) == (None, None, None)
    (same,) = band(np.full((3, 1), 2.0), np.ones((3, 1)))
    assert (same.value, same.low, same.high) == (2.0, None, None)


def test_numbers_are_those_of_the_requests_table() -> None:
    """At each time: requests that have come and not left, those not scheduled yet, and the rest."""
    made: dict[str, Any] = {
        "replications": 3,
        "step_time": {"kind": "constant", "seconds": 0.05},
        "kv_cache": {"blocks": 1000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 8.0},
            "prompt_tokens": {"distribution": "constant", "value": 10},
            "output_tokens": {"distribution": "geometric", "mean": 8},
            "num_requests": 30,
        },
        "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 2}, "two": {"scheduler": "static"}},
    }
    result = sq.run(made, check=False, workers=1)
    table = result.means_over_time(points=9)
    requests = result.requests
    assert table["time_s"].max() == pytest.approx(requests["finish_s"].max())
    for (policy, metric, time_s), row in table.set_index(["policy", "metric", "time_s"]).iterrows():
        own = requests[(requests["policy"] == policy) & (requests["arrival_s"] <= time_s)]
        there = own[own["finish_s"] > time_s]
        waiting = there["first_scheduled_s"] > time_s
        expected = {"in_system": len(there), "waiting": waiting.sum(), "running": (~waiting).sum()}
        if metric in expected:
            assert row["value"] == pytest.approx(expected[metric] / 3)
    ttft = table[(table["policy"] == "one") & (table["metric"] == "ttft_ms")]
    own = requests[requests["policy"] == "one"]
    assert (ttft["value"].fillna(0) * ttft["observations"]).sum() == pytest.approx(own["ttft_ms"].sum())
    assert ttft["observations"].sum() == len(own)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"points": 1}, "points = 1: must be a whole number from 2 to 10,000"),
        ({"points": 2.5}, "points = 2.5"),
        ({"until_s": 0}, "until_s = 0: must be a finite number > 0"),
        ({"until_s": "5"}, "until_s = '5'"),
    ],
)
def test_wrong_parameters_are_told(given: dict[str, Any], told: str) -> None:
    """Each with its value and what is allowed."""
    with pytest.raises(InputError, match=told):
        endless(2).means_over_time(**given)


def test_one_run_has_no_course_of_the_mean() -> None:
    """Without replications there is nothing to average, and that is told; with them, figure and table are saved."""
    with pytest.raises(InputError, match="need replications"):
        endless(1).means_over_time()


def test_figure_and_table_are_saved(tmp_path: Any) -> None:
    """With replications there are a table and a figure more, which a result that is read back has too."""
    result = endless(3)
    names = {path.name for path in result.save(tmp_path / "out")}
    assert {"means_over_time.csv", "means_over_time.png", "means_over_time.svg"} <= names
    back = sq.load_result(tmp_path / "out").means_over_time()
    assert back["value"].tolist() == pytest.approx(result.means_over_time()["value"].tolist(), nan_ok=True)
