"""The capacity where the closed form is in doubt: against simulated backlogs, with bounds, and said aloud."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.experiment.carried import carried
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.scenario import from_mapping

LINEAR = {"kind": "linear", "overhead_s": 0.01, "per_decode_s": 2e-4, "per_prefill_token_s": 5e-5}
VLLM = {"engine": "vllm", "max_num_seqs": 64, "max_num_batched_tokens": 512}
POLICIES = {
    "v11": {**VLLM, "version": "0.11.0", "enable_prefix_caching": False},
    "v33": {**VLLM, "version": "0.33.0"},
    "chunked": {"scheduler": "chunked", "max_num_seqs": 64, "max_num_batched_tokens": 512},
    "whole": {"scheduler": "continuous", "max_num_seqs": 64, "max_num_batched_tokens": 2048},
    "apart": {"scheduler": "continuous", "prefill": "separate", "max_num_seqs": 64, "max_num_batched_tokens": 2048},
    "waves": {"scheduler": "static", "max_num_seqs": 64},
}


def scenario(blocks: int = 120, **more: Any) -> dict[str, Any]:
    """Return a scenario with prompts of 20 to 300 tokens, whose pool holds some ten requests."""
    return {
        "step_time": LINEAR,
        "kv_cache": {"blocks": blocks},
        "max_model_len": 1024,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 5.0},
            "prompt_tokens": {"distribution": "uniform", "low": 20, "high": 300},
            "output_tokens": {"distribution": "geometric", "mean": 40, "max": 400},
            "num_requests": 30,
        },
        "policies": POLICIES,
        **more,
    }


def offering(load: float) -> dict[str, Any]:
    """Return the scenario with one policy, whose pool is full at times, at a load."""
    made = scenario(policies={"chunked": POLICIES["chunked"]})
    known = load_of(made, "chunked").capacity
    assert known is not None
    arrivals = {"process": "poisson", "rate_rps": load * known.max_rate_rps}
    return {**made, "workload": {**made["workload"], "arrivals": arrivals}}


def load_of(made: dict[str, Any], policy: str) -> PolicyLoad:
    """Return what is known of one policy without a run."""
    return policy_loads(from_mapping(made).resolve())[policy]


@pytest.fixture(scope="module")
def backlogs() -> dict[str, float]:
    """Return what a simulated backlog of each policy carries, in requests per second."""
    return {name: one.rate_rps for name, one in carried(from_mapping(scenario()).resolve(), most=1000).items()}


@pytest.mark.parametrize("policy", list(POLICIES))
def test_a_full_pool_is_priced_and_bounded(policy: str, backlogs: dict[str, float]) -> None:
    """With a pool full at times the capacity is within 10 % of a simulated backlog, which the bounds contain."""
    found = load_of(scenario(), policy)
    assert found.capacity is not None
    assert found.capacity.max_rate_rps == pytest.approx(backlogs[policy], rel=0.10)
    assert found.low_rps is not None
    assert found.high_rps is not None
    assert found.low_rps <= backlogs[policy] <= found.high_rps
    assert not found.sure


def test_a_large_pool_is_not_in_doubt() -> None:
    """With blocks for all the closed form counts, and there are no bounds and no caution."""
    loads = policy_loads(from_mapping(scenario(blocks=100_000)).resolve())
    assert {name: (one.sure, one.low_rps, one.high_rps) for name, one in loads.items()} == dict.fromkeys(
        POLICIES, (True, None, None)
    )


def test_equal_outputs_on_a_roofline_start_and_end_together() -> None:
    """Prompts of 32 slots start in one step: the capacity is within 3 % of a backlog."""
    made = scenario(100_000, policies={"whole": {**POLICIES["whole"], "max_num_seqs": 32}})
    made["workload"]["output_tokens"] = {"distribution": "constant", "value": 40}
    made["workload"]["prompt_tokens"] = {"distribution": "uniform", "low": 100, "high": 900}
    made |= {"model": "llama-3.1-8b", "gpu": "h100-sxm"}
    del made["step_time"]
    found, simulated = load_of(made, "whole"), carried(from_mapping(made).resolve(), most=1000)["whole"]
    assert found.capacity is not None
    assert found.capacity.max_rate_rps == pytest.approx(simulated.rate_rps, rel=0.03)
    assert found.caution.startswith("outputs of equal length")


def test_equal_outputs_with_prompts_apart_start_and_end_together() -> None:
    """All prompts of 8 seats share one step, then all decode together: cycles of one prefill and 39 decode steps.

    Requests that are spread evenly need a step for each prompt, so the capacity is less, but not below its bounds.
    """
    apart = {**POLICIES["apart"], "max_num_seqs": 8}
    made = scenario(100_000, policies={"apart": apart})
    made["workload"] |= {
        "prompt_tokens": {"distribution": "constant", "value": 100},
        "output_tokens": {"distribution": "constant", "value": 40},
    }
    found = load_of(made, "apart")
    decodes_s = 39 * (0.01 + 8 * 2e-4)
    together_rps = 8 / (0.01 + 800 * 5e-5 + decodes_s)
    spread_rps = 8 / (8 * (0.01 + 100 * 5e-5) + decodes_s)
    assert found.capacity is not None
    assert found.capacity.max_rate_rps == pytest.approx(together_rps, rel=0.01)
    assert found.low_rps is not None
    assert found.high_rps is not None
    assert found.low_rps <= spread_rps < together_rps <= found.high_rps


def test_one_slot_is_not_in_doubt() -> None:
    """Nothing starts together with something else, and a pool that holds one request is not full at times."""
    one = {name: {**policy, "max_num_seqs": 1} for name, policy in POLICIES.items()}
    made = scenario(policies=one, model="llama-3.1-8b", gpu="h100-sxm")
    made["workload"]["output_tokens"] = {"distribution": "constant", "value": 40}
    del made["step_time"]
    assert {name: found.doubt for name, found in policy_loads(from_mapping(made).resolve()).items()} == dict.fromkeys(
        POLICIES, ""
    )


def test_a_run_says_that_its_load_is_not_sure() -> None:
    """The warning of a run names the policy, and bounds of its load that contain the printed load."""
    result = sq.run(offering(0.9))
    (warning,) = [one for one in result.warnings if "is not sure" in one]
    load = result.summary_rows[0]["load"]
    low, high = (float(part) for part in re.findall(r"between ([0-9.]+) and ([0-9.]+):", warning)[0])
    assert warning.startswith("chunked: the load of ")
    assert low <= load <= high


def test_a_run_does_not_doubt_a_low_load() -> None:
    """At a fifth of the capacity it makes no difference that the capacity is known to some 10 % only."""
    assert not load_of(offering(0.2), "chunked").sure
    assert not [one for one in sq.run(offering(0.2)).warnings if "is not sure" in one]


def test_a_run_does_not_doubt_a_load_that_is_high_for_sure() -> None:
    """At twice the capacity every value within the bounds is an overload; `capacity` tells the doubt all the same."""
    found = load_of(offering(2.0), "chunked")
    assert found.warnings("chunked") == []
    assert found.notes


def test_a_doubt_is_told_if_the_load_is_high_only_at_times() -> None:
    """A low mean load says nothing if more arrives at times than can be served."""
    found = load_of(offering(0.2), "chunked")
    assert found.warnings("chunked") == []
    assert found.warnings("chunked", exceeded=True)


@pytest.mark.parametrize(("load", "told"), [(0.1, False), (0.5, True)])
def test_without_bounds_a_doubt_is_told_from_low_loads_on(load: float, told: bool) -> None:
    """A capacity whose error is not known can be far too high: it was by a factor of up to six."""
    found = replace(load_of(offering(load), "chunked"), low_rps=None, high_rps=None)
    assert bool(found.warnings("chunked")) == told
    assert "the error of the capacity is not known" in found.caution


def test_a_run_with_a_large_pool_says_nothing() -> None:
    """Without doubt there is no warning about the load."""
    result = sq.run(scenario(blocks=100_000, policies={"chunked": POLICIES["chunked"]}))
    assert not [one for one in result.warnings if "load" in one]


@pytest.mark.parametrize(
    ("arrivals", "reason"),
    [
        ({"process": "on_off", "peak_to_mean": 3.0, "mean_burst_s": 5.0}, "neither Poisson nor even"),
        ({"process": "mmpp", "peak_to_mean": 3.0, "calm_to_mean": 0.5, "mean_burst_s": 5.0}, "neither Poisson"),
        ({"process": "weibull", "cv": 2.0}, "not gamma distributed"),
        ({"process": "gamma", "cv": 3.0}, "arrivals are not Poisson"),
        ({"process": "sinusoid", "amplitude": 0.5, "period_s": 60}, "changes with time"),
    ],
)
def test_no_estimates_where_arrivals_were_not_compared(arrivals: dict[str, Any], reason: str) -> None:
    """Correlated, heavy-tailed and time-dependent arrivals have a load, but no estimates, and the reason is said."""
    policy = {"scheduler": "continuous", "max_num_seqs": 32, "max_num_batched_tokens": 1_000_000}
    made = scenario(1_000_000, policies={"p": policy})
    made["workload"]["prompt_tokens"] = {"distribution": "constant", "value": 100}
    made["workload"]["output_tokens"] = {"distribution": "geometric", "mean": 40}
    assert load_of(made, "p").estimate is not None
    made["workload"]["arrivals"] = {"rate_rps": 5.0, **arrivals}
    found = load_of(made, "p")
    assert found.load is not None
    assert found.estimate is None
    assert reason in found.no_estimate


@pytest.mark.parametrize("kind", ["mixed", "separate"])
def test_whole_prompts_leave_a_part_of_the_budget_unused(kind: str) -> None:
    """With prompts of 50 to 450 tokens and a budget of 512, a step holds one or two: the budget is never full."""
    policy = {"scheduler": "continuous", "prefill": kind, "max_num_seqs": 256, "max_num_batched_tokens": 512}
    made = scenario(
        blocks=100_000,
        step_time={"kind": "linear", "overhead_s": 0.01, "per_decode_s": 4e-5, "per_prefill_token_s": 4e-5},
        workload={
            "arrivals": {"process": "poisson", "rate_rps": 20.0},
            "prompt_tokens": {"distribution": "uniform", "low": 50, "high": 450},
            "output_tokens": {"distribution": "geometric", "mean": 60},
            "num_requests": 30,
        },
        policies={"whole": policy},
    )
    found = load_of(made, "whole")
    simulated_rps = carried(from_mapping(made).resolve(), most=1200)["whole"].rate_rps
    assert found.capacity is not None
    assert found.capacity.max_rate_rps == pytest.approx(simulated_rps, rel=0.06)
    assert found.low_rps is not None
    assert found.high_rps is not None
    assert found.low_rps < simulated_rps < found.high_rps
    assert found.caution.startswith("whole prompts do not fill the token budget: the capacity is between ")


def test_clients_that_limit_what_is_in_flight_limit_the_seats() -> None:
    """With at most 8 requests at the server, 64 seats are worth 8; and a backlog says nothing about such clients."""
    workload = scenario()["workload"]
    limited = scenario(blocks=100_000, workload={**workload, "max_concurrency": 8})
    few = scenario(blocks=100_000, policies={"chunked": {**POLICIES["chunked"], "max_num_seqs": 8}})
    found, same = load_of(limited, "chunked"), load_of(few, "chunked")
    assert found.capacity is not None
    assert same.capacity is not None
    assert found.capacity.max_rate_rps == same.capacity.max_rate_rps
    with pytest.raises(InputError, match=r"leave out workload\.max_concurrency"):
        carried(from_mapping(limited).resolve())
