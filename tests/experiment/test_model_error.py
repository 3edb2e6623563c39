"""Runs at both ends of the published error of the step times, and answers that do not hold there."""

from __future__ import annotations

from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.experiment.model_error import NO_PRESET, error_source, published_error, published_errors
from simqueue.scenario import from_mapping
from simqueue.scenario.factors import with_factors

H100: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "step_time": {"kind": "roofline", "preset": "vllm-h100"},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 6},
        "num_requests": 60,
        "prompt_tokens": {"distribution": "uniform", "low": 100, "high": 900},
        "output_tokens": {"distribution": "geometric", "mean": 40},
    },
    "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 16}},
}


def test_the_published_error_is_that_of_the_summary() -> None:
    """Its two factors are 1 - e and 1 + e; without a preset there are none, and the reason is said."""
    result = sq.run(H100 | {"policies": H100["policies"] | {"free": {"scheduler": "static", "step_time": CONSTANT}}})
    found = published_errors(result)
    percent = result.summary_rows[0]["model_error_pct"]
    assert isinstance(percent, float)
    assert found["p"].factors == pytest.approx((1 - percent / 100, 1 + percent / 100))
    assert (found["free"].share, found["free"].reason, found["free"].factors) == (None, NO_PRESET, None)


@pytest.mark.parametrize("percent", [None, 0.0, 100.0, 250.0])
def test_an_error_without_two_factors_has_a_reason(percent: float | None) -> None:
    """A factor must be above 0, and nothing is made up for what was not measured."""
    found = published_error({"model_error_pct": percent, "model_error_regime": "another GPU"})
    assert found.factors is None
    assert found.reason


CONSTANT = {"kind": "constant", "seconds": 0.01}


def test_factors_of_a_resolved_scenario_are_those_of_its_key() -> None:
    """The same bytes as with the key in the file, also in the groups of a fleet, and on top of a factor."""
    fleet = {"groups": {"a": {"step_time_factor": 2}, "b": {"replicas": 2}}}
    policies = {"p": H100["policies"]["p"] | {"fleet": fleet}, "q": H100["policies"]["p"]}
    scenario = from_mapping(H100 | {"policies": policies}).resolve()
    by_key = ["policies.p.fleet.groups.a.step_time_factor=3", "policies.p.fleet.groups.b.step_time_factor=1.5"]
    written = from_mapping(H100 | {"policies": policies}, [*by_key, "policies.p.step_time_factor=1.5"]).resolve()
    made = with_factors(scenario, {"p": 1.5})
    assert made.values == written.values
    for one, other in zip(made.policies, written.policies, strict=True):
        assert one.step_time == other.step_time
    assert made.policies[0].fleet is not None
    assert written.policies[0].fleet is not None
    for ours, theirs in zip(made.policies[0].fleet.groups, written.policies[0].fleet.groups, strict=True):
        assert ours.policy.step_time == theirs.policy.step_time
    with pytest.raises(InputError, match="unknown policy 'r'"):
        with_factors(scenario, {"r": 1.5})


def test_errors_have_one_source_where_preset_and_gpus_are_the_same() -> None:
    """Two policies on the same GPUs are wrong together; on other GPUs, or other numbers of them, each for itself."""
    policies = {"p": {"scheduler": "chunked"}, "q": {"scheduler": "static"}, "r": {"scheduler": "static"}}
    policies["r"] |= {"tensor_parallel": 2}
    p, q, r = map(error_source, from_mapping(H100 | {"policies": policies}).resolve().policies)
    assert p == q != r
    assert p == ("vllm-h100 on 1 x h100-sxm",)
