"""Conditions: what can be written, and what is said about anything else."""

from __future__ import annotations

from typing import Any

import pytest

import simqueue as sq
from simqueue.decisions.conditions import Condition, parse_conditions
from simqueue.experiment.runner import as_resolved
from simqueue.scenario.load import from_mapping

CLASSES = {"chat": {"weight": 1, "slo": {"p95_ttft_ms": 70}}, "batch": {"weight": 1}}
KEYS: dict[str, Any] = {
    "step_time": {"kind": "constant", "seconds": 0.01},
    "kv_cache": {"blocks": 1000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 5},
        "num_requests": 100,
        "prompt_tokens": {"distribution": "constant", "value": 10},
        "output_tokens": {"distribution": "constant", "value": 5},
        "classes": CLASSES,
    },
    "slo": {"ttft_ms": 50, "p99_itl_ms": 20},
    "policies": {"one": {"scheduler": "continuous", "max_num_seqs": 8}},
}


def test_conditions_are_read() -> None:
    """Statistics by the names of the summary and of `slo`, both signs, blanks; limits of requests become a share."""
    found = parse_conditions(
        ["p50_ttft_ms<=500", " p99.9_itl_ms <= 5e1", "request_throughput>=3", "tpot_ms<=30"], attainment=0.9
    )
    assert found.all == (
        Condition("median_ttft_ms", True, 500),
        Condition("p99.9_itl_ms", True, 50),
        Condition("request_throughput", False, 3),
        Condition("good_share", False, 0.9),
    )
    assert found.of_requests == {"tpot_ms": 30}
    assert str(found.all[1]) == "p99.9_itl_ms<=50"


@pytest.mark.parametrize(("given", "limit"), [([], 0.01), (["lost_share<=0.2"], 0.2)])
def test_lost_requests_are_limited(given: list[str], limit: float) -> None:
    """Without limits of single requests, at most one request in a hundred may be lost, or as many as is given."""
    found = parse_conditions(["mean_ttft_ms<=5", *given])
    assert found.all == (Condition("mean_ttft_ms", True, 5), Condition("lost_share", True, limit))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "give at least one limit"),
        (["p99_ttft_ms<500"], "'p99_ttft_ms<500': must be METRIC<=VALUE or METRIC>=VALUE"),
        (["p99_ttft_ms<=500ms"], "'500ms' must be a number, without a unit"),
        (["p99_ttft_ms<=nan"], "'nan' must be a number"),
        (["p99_tfft_ms<=500"], "did you mean 'p99_ttft_ms'?"),
        (["p999_ttft_ms<=500"], "unknown metric 'p999_ttft_ms'"),
        (["completed>=500"], "unknown metric 'completed'"),
        (["p99_ttft_ms<=0"], "a limit in ms must be > 0"),
        (["lost_share<=2"], "a share must be >= 0 and <= 1"),
        (["ttft_ms>=5"], "a limit of single requests must be <="),
        (["ttft_ms<=5", "ttft_ms<=6"], "ttft_ms is limited twice"),
        (["p50_ttft_ms<=5", "median_ttft_ms<=6"], "median_ttft_ms is limited twice"),
        (["ttft_ms<=5", "good_share>=0.5"], "good_share is limited twice (by --attainment)"),
        (["good_share>=0.5"], "good_share needs limits of single requests"),
        (["scenario"], "there is no scenario"),
    ],
)
def test_what_is_wrong_is_said(texts: list[str], said: str) -> None:
    """Each wrong text is one line that says what is wrong."""
    with pytest.raises(sq.InputError) as caught:
        parse_conditions(texts)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0, 1.5, -1, float("nan")])
def test_an_attainment_is_a_share(share: float) -> None:
    """It is above 0 and at most 1."""
    with pytest.raises(sq.InputError, match="must be > 0 and <= 1"):
        parse_conditions(["ttft_ms<=5"], attainment=share)


def test_an_attainment_needs_limits_of_requests() -> None:
    """A share of nothing is an error."""
    with pytest.raises(sq.InputError, match="--attainment: needs limits of single requests"):
        parse_conditions(["p99_ttft_ms<=5"], attainment=0.9)


def test_the_limits_of_the_scenario() -> None:
    """Its statistics, those of classes with limits of their own, and its limits of single requests as a share."""
    scenario = as_resolved(KEYS, (), None)
    found = parse_conditions(["scenario", "p90_e2el_ms<=900"], scenario=scenario)
    assert [str(one) for one in found.all] == [
        "p99_itl_ms<=20",
        "p95_ttft_ms of chat<=70",
        "good_share>=0.99",
        "p90_e2el_ms<=900",
    ]
    asked = found.asked_of(scenario)
    assert asked.slo == scenario.slo
    assert asked.values["summary"]["percentiles"] == [90.0, 95.0, 99.0]


def test_other_limits_replace_those_of_the_scenario() -> None:
    """The scenario that is asked has the given limits alone, also as a scenario file would have them."""
    scenario = as_resolved(KEYS, (), None)
    asked = parse_conditions(["e2el_ms<=300", "p98_ttft_ms<=5"]).asked_of(scenario)
    assert (asked.slo, asked.class_slos) == ({"e2el_ms": 300}, {})
    again = from_mapping(asked.values).resolve()
    assert again.slo == {"e2el_ms": 300}
    assert set(map(tuple, (sorted(own) for own in again.class_slos.values()))) == {("e2el_ms",)}
    assert "p98_ttft_ms" in sq.run(asked).summary.columns
