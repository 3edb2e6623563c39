"""`step_time_factor` multiplies all step times, whichever model they come from, and leaves everything else alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.experiment.offered_load import policy_loads
from simqueue.scenario import from_mapping
from simqueue.steptime.linear import ConstantStepTime, LinearStepTime
from simqueue.steptime.scaled import ScaledStepTime, scaled, unscaled

LINEAR = {"kind": "linear", "overhead_s": 0.01, "per_prefill_token_s": 2e-5, "per_decode_s": 1e-4}
TOY: dict[str, Any] = {
    "step_time": LINEAR,
    "kv_cache": {"blocks": 10_000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 4},
        "num_requests": 40,
        "prompt_tokens": {"distribution": "uniform", "low": 10, "high": 300},
        "output_tokens": {"distribution": "geometric", "mean": 20},
    },
    "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 4}},
}
H100 = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "step_time": {"kind": "roofline", "preset": "vllm-h100"}}


def resolved_step(scenario: dict[str, Any]) -> Any:
    """Return the step time of the only policy."""
    return from_mapping(scenario).resolve().policies[0].step_time


def test_every_time_scales_with_the_factor() -> None:
    """Twice the step times, and arrivals at twice the gaps: all times of the run are twice as long, to the bit."""
    twice = copy.deepcopy(TOY) | {"step_time_factor": 2}
    twice["workload"]["arrivals"]["rate_rps"] = 2
    one, two = (sq.run(scenario).requests for scenario in (TOY, twice))
    for name in ("arrival_s", "first_token_s", "finish_s"):
        assert (2 * one[name] == two[name]).all()


@pytest.mark.parametrize("hardware", [{}, H100])
def test_the_capacity_is_divided_by_the_factor(hardware: dict[str, Any]) -> None:
    """A server whose steps all take 1.25 times as long carries 1 / 1.25 of the rate; so says the law."""
    rates = []
    for factor in (1, 1.25):
        found = from_mapping(TOY | hardware | {"step_time_factor": factor}).resolve()
        load = policy_loads(found)["p"]
        assert load.capacity is not None
        rates.append(load.capacity.max_rate_rps)
    assert rates[0] / rates[1] == pytest.approx(1.25, rel=1e-6)


def test_a_factor_of_1_is_the_model_itself() -> None:
    """Without a factor nothing is wrapped."""
    assert resolved_step(TOY | {"step_time_factor": 1}) == resolved_step(TOY)
    assert not isinstance(resolved_step(TOY | H100 | {"step_time_factor": 1.0}), ScaledStepTime)


def test_closed_forms_still_see_constant_and_linear_times() -> None:
    """They stay what they are, with other values; a preset can be asked for under the factor."""
    assert resolved_step(TOY | {"step_time_factor": 3}) == LinearStepTime(3 * 0.01, 3 * 2e-5, 0, 3 * 1e-4, 0)
    assert scaled(ConstantStepTime(0.5), 0.5) == ConstantStepTime(0.25)
    calibrated = resolved_step(TOY | H100 | {"step_time_factor": 1.1})
    assert unscaled(calibrated) == resolved_step(TOY | H100)
    assert copy.deepcopy(calibrated) == calibrated


def test_a_policy_and_a_group_have_their_own() -> None:
    """Each of them overrides what is above it, also where the step time is the scenario's."""
    fleet = {"groups": {"old": {"step_time_factor": 4}, "new": {}}}
    policies = {"p": TOY["policies"]["p"] | {"step_time_factor": 2, "fleet": fleet}, "q": TOY["policies"]["p"]}
    one, other = from_mapping(TOY | {"step_time_factor": 3, "policies": policies}).resolve().policies
    assert one.fleet is not None
    overheads = {group.name: group.policy.step_time.seconds.__self__.overhead_s for group in one.fleet.groups}
    assert overheads == {"old": 0.04, "new": 0.02}
    assert isinstance(other.step_time, LinearStepTime)
    assert other.step_time.overhead_s == pytest.approx(0.03)


def test_the_error_of_a_preset_is_the_same_under_a_factor() -> None:
    """What the preset was fitted to, and what kind of thing it warns of, does not depend on the factor."""
    plain, slow = (sq.run(TOY | H100 | {"step_time_factor": factor}) for factor in (1, 1.2))
    for name in ("model_error_pct", "model_error_regime"):
        assert plain.summary_rows[0][name] == slow.summary_rows[0][name] is not None
    assert len(plain.warnings) == len(slow.warnings)


@pytest.mark.parametrize("factor", [0, -1, 1e-4, 1e4, float("nan"), "fast", None])
def test_a_factor_that_is_none_is_an_error(factor: Any) -> None:
    """A factor is a number from 0.001 to 1000."""
    with pytest.raises(InputError, match="step_time_factor"):
        from_mapping(TOY | {"step_time_factor": factor})
