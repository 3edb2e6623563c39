"""Derivatives by central differences against those of exact formulas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.theory import mg1, slotted_continuous

RATE = "workload.arrivals.rate_rps"
SCENARIO: dict[str, Any] = {
    "step_time": {"kind": "constant", "seconds": 0.1},
    "kv_cache": {"blocks": 100_000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 5.0},
        "prompt_tokens": {"distribution": "constant", "value": 10},
        "output_tokens": {"distribution": "constant", "value": 1},
        "num_requests": 400,
    },
    "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 1}},
}


def test_the_derivative_to_the_rate_is_that_of_md1() -> None:
    """One slot and one token are M/D/1: TTFT is the sojourn, whose slope to the rate at a load of 0.5 is 20 ms s."""
    metrics = ["mean_ttft_ms", "request_throughput"]
    ttft, rate = sq.sensitivity(SCENARIO, [RATE], metrics=metrics, replications=8, seed=1)
    above, below = (1000 * mg1(at, 0.1, 0.01).mean_sojourn_s for at in (5.25, 4.75))
    exact = (above - below) / 0.5
    assert exact == pytest.approx(20, rel=0.02)
    assert ttft.low is not None
    assert ttft.high is not None
    assert ttft.low < exact < ttft.high
    assert ttft.high - ttft.low < 2 * exact
    assert rate.derivative == pytest.approx(1, abs=0.1)
    assert (ttft.below, ttft.at, ttft.above) == (4.75, 5.0, 5.25)


def test_what_does_not_change_has_the_derivative_0() -> None:
    """Prompts alone occupy the server, and TPOT needs two tokens: nothing depends on the number of slots but waits."""
    workload = SCENARIO["workload"] | {"num_requests": 60, "output_tokens": {"distribution": "constant", "value": 3}}
    wide = SCENARIO | {"workload": workload, "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 200}}}
    metrics = ["mean_tpot_ms", "request_throughput", "preemptions"]
    found = sq.sensitivity(wide, ["policies.one.max_num_seqs"], metrics=metrics, replications=3, workers=1)
    assert [(one.derivative, one.low, one.high) for one in found] == [(0.0, 0.0, 0.0)] * 3


def test_the_derivative_to_the_slots_is_that_of_the_exact_chain() -> None:
    """With geometric outputs of mean 4, the wait of 3 and of 5 slots is known; TTFT is the wait plus a step."""
    workload = SCENARIO["workload"] | {
        "arrivals": {"process": "poisson", "rate_rps": 5.0},
        "output_tokens": {"distribution": "geometric", "mean": 4},
    }
    four = SCENARIO | {"workload": workload, "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 4}}}
    (found,) = sq.sensitivity(four, ["policies.one.max_num_seqs"], metrics=["mean_ttft_ms"], replications=8, seed=2)
    waits = [1000 * slotted_continuous(5.0, slots, 4, 0.1).mean_wait_s for slots in (3, 5)]
    assert (found.below, found.above) == (3, 5)
    assert found.low is not None
    assert found.high is not None
    assert found.low < (waits[1] - waits[0]) / 2 < found.high < 0


def test_the_command_prints_a_row_per_metric(command: Callable[..., Any], scenario_file: Callable[..., Any]) -> None:
    """As a table and as JSON; without randomness there is a reason instead of a number."""
    still = SCENARIO["workload"] | {"arrivals": {"process": "constant", "rate_rps": 5.0}, "num_requests": 20}
    path = scenario_file(SCENARIO | {"workload": still})
    code, out, _ = command("sensitivity", path, "--to", RATE, "--metric", "mean_ttft_ms", "--quiet")
    assert code == 0
    assert "4.75" in out
    assert "nothing in the traffic is random" in " ".join(out.split())
    assert "percentiles:" not in out
    _, out, _ = command("sensitivity", path, "--to", RATE, "--metric", "p95_ttft_ms", "--quiet")
    assert "percentiles: means of the runs' own" in " ".join(out.split())
    code, out, _ = command("sensitivity", path, "--to", RATE, "--json", "--quiet")
    assert [one["derivative"] for one in json.loads(out)] == [None] * 4


@pytest.mark.parametrize(
    ("key", "options", "told"),
    [
        ("workload.arrivals.rate", {}, "unknown key with a number 'workload.arrivals.rate'; did you mean"),
        ("policies.one.max_num_seqs", {}, "max_num_seqs = 1: must be at least 2"),
        ("warmup_s", {}, "warmup_s = 0: has no relative step"),
        (RATE, {"step": 1.0}, "step = 1: must be > 0 and < 1"),
        (RATE, {"replications": 1}, "replications = 1: must be at least 2"),
        (RATE, {"replications": 0}, "replications = 0: must be at least 2"),
        (RATE, {"metrics": ["ttft"]}, "unknown metric 'ttft'"),
    ],
)
def test_what_has_no_derivative_is_refused(key: str, options: dict[str, Any], told: str) -> None:
    """Unknown keys and metrics, values that cannot be changed both ways, and too few replications."""
    with pytest.raises(InputError, match=told):
        sq.sensitivity(SCENARIO, [key], **options)


def test_a_percentile_with_too_few_values_has_no_derivative() -> None:
    """None of 20 requests is expected beyond a p99: the reason says how many are needed."""
    few = SCENARIO | {"workload": SCENARIO["workload"] | {"num_requests": 20}}
    (found,) = sq.sensitivity(few, [RATE], metrics=["p99_ttft_ms"], replications=2, workers=1)
    assert found.derivative is None
    assert "n too small: 20 values in a run, at least 100 are needed" in found.reason
