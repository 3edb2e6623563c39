"""The capacity law where lengths, seats or budgets are as small or as even as they can be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.scenario import from_mapping
from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.linear import ConstantStepTime, LinearStepTime
from simqueue.theory.capacity import capacity
from simqueue.theory.lengths import from_sample
from simqueue.theory.limits import Server
from simqueue.theory.operating_point import operating_point

SEATS = 8
BUDGET = {"max_num_seqs": SEATS, "max_num_batched_tokens": 1024}
POLICIES: dict[str, dict[str, Any]] = {
    "static": {"scheduler": "static", "max_num_seqs": SEATS},
    "mixed": {"scheduler": "continuous", **BUDGET},
    "separate": {"scheduler": "continuous", "prefill": "separate", **BUDGET},
    "chunked": {"scheduler": "chunked", **BUDGET},
    "chunks": {"scheduler": "chunked", "chunk_tokens": 64, **BUDGET},
    "budget_is_seats": {"scheduler": "chunked", "max_num_seqs": SEATS, "max_num_batched_tokens": SEATS},
    "one_seat": {"scheduler": "chunked", "max_num_seqs": 1, "max_num_batched_tokens": 1024},
    "one_seat_separate": {**BUDGET, "scheduler": "continuous", "prefill": "separate", "max_num_seqs": 1},
    "one_token": {"scheduler": "chunked", "max_num_seqs": 1, "max_num_batched_tokens": 1},
    "V1": {"engine": "vllm", "version": "0.33.0", **BUDGET},
    "V0": {"engine": "vllm", "version": "0.7.3", "max_num_seqs": SEATS, "max_num_batched_tokens": 4096},
    "padded_prompts": {"engine": "vllm", "version": "0.2.7", "max_num_seqs": SEATS},
}
STEP_TIMES: dict[str, dict[str, Any]] = {
    "constant": {"kind": "constant", "seconds": 0.01},
    "linear": {"kind": "linear", "overhead_s": 0.008, "per_decode_s": 1e-4, "per_prefill_token_s": 2e-5},
    "roofline": {"kind": "roofline", "preset": "ideal"},
    "calibrated": {"kind": "roofline", "preset": "vllm-h100"},
}


def scenario(prompt: int, output: int, step_time: str, **workload: Any) -> dict[str, Any]:
    """Return all policies with equal prompts and outputs."""
    return {
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "max_model_len": 4096,
        "step_time": STEP_TIMES[step_time],
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 0.1},
            "num_requests": 5,
            "prompt_tokens": {"distribution": "constant", "value": prompt},
            "output_tokens": {"distribution": "constant", "value": output},
            **workload,
        },
        "policies": POLICIES,
    }


def loads(prompt: int, output: int, step_time: str) -> dict[str, PolicyLoad]:
    """Return the loads of all policies."""
    return policy_loads(from_mapping(scenario(prompt, output, step_time)).resolve())


@pytest.mark.parametrize("step_time", list(STEP_TIMES))
@pytest.mark.parametrize(("prompt", "output"), [(1, 1), (200, 1), (1, 20)])
def test_every_policy_has_a_capacity_at_the_edges(prompt: int, output: int, step_time: str) -> None:
    """It is finite, no row of the table is below it, and the least row is the one that is said to limit."""
    for name, found in loads(prompt, output, step_time).items():
        assert found.why_not == "", name
        limit = found.capacity
        assert limit is not None
        assert 0 < limit.max_rate_rps < math.inf, name
        assert min(limit.limits_rps.values()) == limit.limits_rps.get(limit.binding) or limit.binding == "compute"
        assert limit.felt_rps[limit.binding] == min(limit.felt_rps.values()), name
        assert min(limit.limits_rps.values()) >= limit.max_rate_rps, name
        assert (found.estimate is None) == bool(found.no_estimate), name


FULL = 100 * SEATS
"""Requests per second of one step of 10 ms each, with all seats in use."""


@pytest.mark.parametrize(
    ("prompt", "output", "expected"),
    [
        # One step for each token of the answer, the prompt included, and all seats in use. A budget of one token per
        # seat is one token per seat and step. Only a step's whole prompts of 1,024 tokens fit the budget.
        (1, 1, {"static": FULL, "mixed": FULL, "chunked": FULL, "budget_is_seats": FULL, "one_seat": 100, "V1": FULL}),
        (1, 20, {"static": FULL / 20, "mixed": FULL / 20, "budget_is_seats": FULL / 20, "one_seat": 5}),
        (200, 1, {"static": FULL, "one_seat": 100, "one_seat_separate": 100, "budget_is_seats": 4, "one_token": 0.5}),
    ],
)
def test_capacities_of_constant_steps(prompt: int, output: int, expected: dict[str, float]) -> None:
    """With constant steps the capacity is steps per second over steps per request."""
    found = loads(prompt, output, "constant")
    capacities = {name: one.capacity.max_rate_rps for name, one in found.items() if one.capacity}
    assert {name: capacities[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("step_time", list(STEP_TIMES))
def test_one_token_answers_run_to_the_end(step_time: str) -> None:
    """Requests far apart: TTFT is one step or a step for each piece of the prompt, and TPOT is undefined."""
    for row in sq.run(scenario(64, 1, step_time)).summary_rows:
        assert row["completed"] == 5
        assert row["mean_tpot_ms"] is None
        assert isinstance(row["load"], float)
        pieces = {"budget_is_seats": 8, "one_token": 64}.get(str(row["policy"]), 1)
        if step_time == "constant":
            assert row["mean_ttft_ms"] == pytest.approx(10 * pieces)


# -- arrivals that hardly vary -----------------------------------------------------------------------------------------

EVEN: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "workload": {
        "arrivals": {"process": "constant", "rate_rps": 5},
        "num_requests": 100,
        "prompt_tokens": {"distribution": "constant", "value": 1000},
        "output_tokens": {"distribution": "constant", "value": 200},
    },
    "policies": {"chunked": {"scheduler": "chunked"}, "vllm": {"engine": "vllm", "version": "0.33.0"}},
}


def with_arrivals(arrivals: dict[str, Any], **policies: Any) -> dict[str, PolicyLoad]:
    """Return the loads of `EVEN` with other arrivals."""
    made = {**EVEN, "workload": {**EVEN["workload"], "arrivals": arrivals}, "policies": policies or EVEN["policies"]}
    return policy_loads(from_mapping(made).resolve())


def test_even_arrivals_have_the_capacity_of_others() -> None:
    """37.0 and 39.1 requests a second if equal requests are spread, and less if not, whatever the arrivals are."""
    known = with_arrivals({"process": "poisson", "rate_rps": 5})
    for arrivals in ({"process": "constant"}, {"process": "gamma", "burstiness": math.inf}):
        found = with_arrivals({**arrivals, "rate_rps": 5})
        for name, rate_rps in (("chunked", 37.0), ("vllm", 39.1)):
            one = found[name]
            assert one.low_rps is not None
            assert one.high_rps is not None
            assert one.low_rps <= rate_rps <= 1.005 * one.high_rps
            assert one.load == known[name].load
    row = sq.run({**EVEN, "policies": {"chunked": EVEN["policies"]["chunked"]}}).summary_rows[0]
    assert row["load"] == known["chunked"].load
    assert row["binding"] == "slots"


@pytest.mark.parametrize("seats", [16, 20_000])
def test_the_wait_shrinks_with_the_variability_of_arrivals(seats: int) -> None:
    """At a load of 0.9 the formula of the wait for a seat falls to nothing as gamma gaps become even."""
    waits = []
    lengths = from_sample(np.full(4, 10), np.full(4, 5))
    server = Server("mixed", seats, 10**8, kv_blocks=None)
    step = ConstantStepTime(0.01)
    rate_rps = 0.9 * capacity(step, lengths, server).max_rate_rps
    for gap_scv in (1.0, 0.25, 1e-4, 1e-12, 0.0):
        found = operating_point(step, lengths, server, rate_rps, gap_scv=gap_scv)
        assert found is not None
        waits.append(found.slot_wait_s)
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] < 1e-6


# -- estimates ---------------------------------------------------------------------------------------------------------

COMPARED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "step_time": {"kind": "linear", "overhead_s": 0.02, "per_decode_s": 5e-4, "per_prefill_token_s": 2e-5},
    "kv_cache": {"blocks": 100_000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 4},
        "num_requests": 50,
        "prompt_tokens": {"distribution": "constant", "value": 500},
        "output_tokens": {"distribution": "geometric", "mean": 100},
    },
    "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 32}},
}
OUTSIDE: dict[str, tuple[list[str], str]] = {
    "roofline": (["step_time={kind: roofline, preset: ideal}"], "not linear"),
    "chunks": (["policies.p={scheduler: chunked, max_num_seqs: 32}"], "in chunks"),
    "waves": (["policies.p={scheduler: static}"], "in waves"),
    "separate": (["policies.p.prefill=separate"], "steps of their own"),
    "pool": (["kv_cache.blocks=300"], "kv is the limit"),
    "load": (["workload.arrivals.rate_rps=8.1"], "loads below 0.95"),
    "prompts": (["workload.prompt_tokens={distribution: uniform, low: 1, high: 999}"], "differ in length"),
    "outputs": (["workload.output_tokens={distribution: lognormal, mean: 100, cv: 1}"], "nor geometric"),
    "one token": (
        ["workload.output_tokens={distribution: constant, value: 1}", "policies.p.max_num_batched_tokens=100000"],
        "one token",
    ),
    "budget": (["policies.p.max_num_batched_tokens=1024"], "fewer than 4 prompts"),
    "long prompts": (["workload.prompt_tokens.value=1900"], "longer than a step"),
}


@pytest.mark.parametrize("kind", list(OUTSIDE))
def test_estimates_are_given_only_where_they_were_compared(kind: str) -> None:
    """Capacity and load stay, the estimates do not, and the reason is said."""
    changes, reason = OUTSIDE[kind]
    known = policy_loads(from_mapping(COMPARED).resolve())["p"]
    assert known.estimate is not None
    found = policy_loads(from_mapping(COMPARED, changes).resolve())["p"]
    assert found.load is not None
    assert found.estimate is None
    assert reason in found.no_estimate


@pytest.mark.parametrize(("low", "high", "warned"), [(400, 600, False), (400, 3000, True)])
def test_prompts_beyond_the_budget_of_whole_prompts_are_a_caution(low: int, high: int, warned: bool) -> None:
    """They run when nothing else does, which the law does not know."""
    prompts = f"workload.prompt_tokens={{distribution: uniform, low: {low}, high: {high}}}"
    changes = [prompts, "policies.p.max_num_batched_tokens=2048"]
    found = policy_loads(from_mapping(COMPARED, changes).resolve())["p"]
    assert ("run alone" in found.caution) == warned


# -- numbers that are far too large ------------------------------------------------------------------------------------


class Counted(StepTime):
    """A linear step time that counts what it is asked about."""

    def __init__(self) -> None:
        self.linear = LinearStepTime(0.01, 2e-5, 0, 1e-4, 0)
        self.prompts_seen = 0

    def seconds(self, batch: Batch) -> float:
        """Return the duration."""
        self.prompts_seen += 1 + len(batch.prefill)
        return self.linear.seconds(batch)


@pytest.mark.parametrize("batching", ["static", "mixed", "separate", "chunked"])
@pytest.mark.parametrize("size", [10**6, 10**9, 10**12])
def test_the_law_costs_no_more_for_larger_limits(batching: Any, size: int) -> None:
    """A budget or a number of seats of 10^12 is as good as no limit, and no tuple of so many prompts is made."""
    lengths = from_sample(np.array([100, 300]), np.array([10, 30]))
    step = Counted()
    seats = size if batching == "static" else 256
    for server in (
        Server(batching, seats, None if batching == "static" else size, kv_blocks=20_000),
        Server(batching, size, None, kv_blocks=20_000),
    ):
        found = capacity(step, lengths, server)
        assert 0 < found.max_rate_rps < math.inf
        assert operating_point(step, lengths, server, 0.5 * found.max_rate_rps) is None or batching == "mixed"
    assert step.prompts_seen < 200_000


@pytest.mark.parametrize("seats", [1, 4, 64])
def test_one_seat_has_estimates_and_only_poisson_arrivals_have(seats: int) -> None:
    """The capacity of one seat has no compute limit of its own; with other arrivals TTFT was too far off."""
    policy = {"scheduler": "continuous", "max_num_seqs": seats, "max_num_batched_tokens": 10**6}
    policy |= {"step_time": STEP_TIMES["constant"], "kv_cache": {"blocks": 10_000_000}}
    for process, known in (("poisson", True), ("constant", False)):
        least = with_arrivals({"process": process, "rate_rps": 1}, p=policy)["p"].capacity
        assert least is not None
        found = with_arrivals({"process": process, "rate_rps": 0.5 * least.max_rate_rps}, p=policy)["p"]
        assert (found.estimate is not None) == known
        assert known or "not Poisson" in found.no_estimate
