"""The capacity law against simulated saturation, and overload on either side of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.rates import saturation_throughput
from simqueue.scenario import from_mapping
from simqueue.steptime.linear import LinearStepTime
from simqueue.theory.bulk import continuous_over_static
from simqueue.theory.capacity import capacity
from simqueue.theory.lengths import from_moments
from simqueue.theory.limits import Server
from simqueue.theory.operating_point import operating_point

from .oracles import affine_steps

BIG = {"layout": "paged", "block_size": 16, "blocks": 1_000_000}
SMALL = {"block_size": 1, "blocks": 16_000}
GEOMETRIC = {"distribution": "geometric", "mean": 100}
CONSTANT = {"distribution": "constant", "value": 100}
LOGNORMAL = {"distribution": "lognormal", "mean": 100.5, "cv": 1.0}
WHOLE = {"scheduler": "continuous", "max_num_batched_tokens": 1_000_000}


def linear(a: float, b: float, c: float, d: float = 0.0) -> dict[str, Any]:
    """Return a linear step time."""
    return {
        "kind": "linear",
        "overhead_s": a,
        "per_decode_s": b,
        "per_prefill_token_s": c,
        "per_context_token_s": d,
    }


def scenario(policy: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a scenario with one policy: prompts of 500, geometric outputs of 100, steps of 20 ms and more."""
    return {
        "step_time": linear(0.02, 5e-4, 2e-5),
        "kv_cache": BIG,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 8.0},
            "prompt_tokens": {"distribution": "constant", "value": 500},
            "output_tokens": GEOMETRIC,
            "num_requests": 100,
        },
        "policies": {"p": policy},
        **more,
    }


def with_lengths(made: dict[str, Any], **distributions: Any) -> dict[str, Any]:
    """Return the scenario with other distributions of lengths."""
    return {**made, "workload": {**made["workload"], **distributions}}


def chunked(tokens: int, seqs: int) -> dict[str, Any]:
    """Return a chunked policy."""
    return {"scheduler": "chunked", "max_num_batched_tokens": tokens, "max_num_seqs": seqs}


PROMPT_1000 = {"distribution": "constant", "value": 1000}
AFFINE_CASES = {
    "slots, geometric": (scenario({**WHOLE, "max_num_seqs": 32}), "slots"),
    "slots, constant": (with_lengths(scenario({**WHOLE, "max_num_seqs": 32}), output_tokens=CONSTANT), "slots"),
    "slots, lognormal": (
        with_lengths(
            scenario({**WHOLE, "max_num_seqs": 32}),
            output_tokens=LOGNORMAL,
            prompt_tokens={"distribution": "lognormal", "mean": 500.5, "cv": 1.0},
        ),
        "slots",
    ),
    "constant steps": (scenario({**WHOLE, "max_num_seqs": 32}, step_time=linear(0.025, 0, 0)), "slots"),
    "tokens": (
        with_lengths(
            scenario(chunked(256, 64)),
            prompt_tokens=PROMPT_1000,
            output_tokens={"distribution": "geometric", "mean": 50},
        ),
        "tokens",
    ),
    "chunks and slots": (with_lengths(scenario(chunked(512, 32)), prompt_tokens=PROMPT_1000), "slots"),
    "reservation": (
        scenario({**WHOLE, "max_num_seqs": 1000}, kv_cache={**SMALL, "layout": "contiguous"}),
        "kv",
    ),
    "paged pool": (scenario({**WHOLE, "max_num_seqs": 1000}, kv_cache=SMALL), "kv"),
    "paged pool, constant": (
        with_lengths(
            scenario({**WHOLE, "max_num_seqs": 1000}, kv_cache=SMALL),
            output_tokens=CONSTANT,
            prompt_tokens={"distribution": "uniform", "low": 250, "high": 750},
        ),
        "kv",
    ),
    "context": (scenario({**WHOLE, "max_num_seqs": 32}, step_time=linear(0.02, 5e-4, 2e-5, 1e-6)), "slots"),
    "separate prefill": (scenario({**WHOLE, "max_num_seqs": 32, "prefill": "separate"}), "slots"),
    "waves": (
        with_lengths(scenario({"scheduler": "static", "max_num_seqs": 16}), output_tokens=CONSTANT),
        "slots",
    ),
    "waves, geometric": (scenario({"scheduler": "static", "max_num_seqs": 16}), "slots"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(AFFINE_CASES))
def test_affine_capacity_within_two_percent(name: str) -> None:
    """λ_max is within 2 % of what a backlog is served at (3 % if a short play shows it), and names the right limit."""
    loaded = from_mapping(AFFINE_CASES[name][0]).resolve()
    load = policy_loads(loaded)["p"]
    found = load.capacity
    assert found is not None
    simulated = saturation_throughput(loaded, "p", requests=4000, replications=8 if "waves" in name else 3)
    assert found.binding == AFFINE_CASES[name][1]
    assert found.max_rate_rps == pytest.approx(simulated.value, rel=0.02 if load.sure else 0.03)
    assert load.sure or (load.low_rps or 0.0) < simulated.value < (load.high_rps or math.inf)


CHAT = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 16.0},
        "prompt_tokens": {"distribution": "lognormal", "median": 700, "sigma": 0.9, "min": 64, "max": 4096},
        "output_tokens": {"distribution": "lognormal", "median": 110, "sigma": 0.6, "min": 16, "max": 384},
        "num_requests": 100,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        {"scheduler": "chunked", "max_num_seqs": 32, "max_num_batched_tokens": 8192, "chunk_tokens": 512},
        {"scheduler": "chunked", "max_num_seqs": 64, "max_num_batched_tokens": 2048},
        {"scheduler": "chunked", "max_num_seqs": 256, "max_num_batched_tokens": 512},
        {"scheduler": "continuous", "max_num_seqs": 32, "max_num_batched_tokens": 8192},
    ],
    ids=["chunks of 512", "budget 2048", "budget 512", "whole prompts"],
)
def test_roofline_capacity_within_three_percent(policy: dict[str, Any]) -> None:
    """On an H100's roofline λ_max is within 3 % of the simulated saturation, with chunks and with whole prompts."""
    loaded = from_mapping({**CHAT, "policies": {"p": policy}}).resolve()
    found = policy_loads(loaded)["p"].capacity
    assert found is not None
    simulated = saturation_throughput(loaded, "p", requests=4000, replications=3)
    assert found.max_rate_rps == pytest.approx(simulated.value, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slots, geometric", "tokens", "paged pool"])
def test_the_law_separates_stable_from_unstable(name: str) -> None:
    """At 0.95 of λ_max a run keeps up and is not flagged; at 1.05 it is, by its load and by its own growth."""
    made = AFFINE_CASES[name][0]
    found = policy_loads(from_mapping(made).resolve())["p"].capacity
    assert found is not None
    rows = {}
    for share in (0.95, 1.05):
        rate = share * found.max_rate_rps
        arrivals = {"arrivals": {"process": "poisson", "rate_rps": rate}, "num_requests": 10_000}
        result = sq.run({**made, "workload": {**made["workload"], **arrivals}, "warmup_s": 100.0}, check=False)
        rows[share] = result.summary_rows[0]
    assert rows[0.95]["overloaded"] is False
    assert rows[0.95]["mean_ttft_ms"] is not None
    assert rows[1.05]["overloaded"] is True
    assert rows[1.05]["mean_ttft_ms"] is None


def lengths(prompt: int, mean: float) -> Any:
    """Return equal prompts and geometric outputs."""
    outputs = np.random.default_rng(0).geometric(1 / mean, 65_536)
    return from_moments((prompt, 0), (mean, mean * mean - mean), np.full(10, prompt), outputs)


@pytest.mark.parametrize(("share", "tpot", "ttft"), [(0.3, 0.02, 0.06), (0.7, 0.02, 0.06), (0.9, 0.06, 0.06)])
def test_estimates_against_the_exact_chain(share: float, tpot: float, ttft: float) -> None:
    """TPOT and TTFT of eight slots are within a few percent of the exact two-dimensional chain."""
    step, moments, server = LinearStepTime(0.02, 5e-5, 0, 0.001, 0), lengths(500, 20), Server("mixed", 8)
    limit = capacity(step, moments, server).max_rate_rps
    assert limit == pytest.approx(10.6383, abs=5e-5)
    exact = affine_steps(share * limit, 8, 20, 500, 0.02, 0.001, 5e-5, most=160)
    found = operating_point(step, moments, server, share * limit)
    assert found is not None
    assert found.load == pytest.approx(share)
    assert found.tpot_s == pytest.approx(exact.itl_s, rel=tpot)
    assert found.ttft_s == pytest.approx(exact.ttft_s, rel=ttft)


@pytest.mark.parametrize(
    ("share", "burstiness", "constant", "expected"),
    [
        (0.8, 1, False, 0.1031),
        (0.8, 1, True, 0.0835),
        (0.8, 0.25, False, 0.4432),
        (0.8, 4, True, 0.0600),
        (0.9, 0.25, False, 1.7004),
        (0.9, 4, True, 0.0753),
    ],
)
def test_peakedness_prices_burstiness(share: float, burstiness: float, constant: bool, expected: float) -> None:
    """TTFT estimates for gamma arrivals at 32 slots are those of the published approximation, to 1.5 %."""
    moments = from_moments((500, 0), (100, 0), np.array([500]), np.array([100])) if constant else lengths(500, 100)
    step, server = LinearStepTime(0.02, 2e-5, 0, 5e-4, 0), Server("mixed", 32)
    found = operating_point(step, moments, server, share * 8.197, gap_scv=1 / burstiness)
    assert found is not None
    assert found.ttft_s == pytest.approx(expected, rel=0.015)


def test_equal_lengths_make_waves_and_continuous_batching_equal() -> None:
    """With equal lengths a full wave wastes nothing: both carry 16 / 2.952 = 5.4201 requests a second."""
    moments = from_moments((500, 0), (100, 0), np.array([500]), np.array([100]))
    step = LinearStepTime(0.02, 2e-5, 0, 5e-4, 0)
    rates = [capacity(step, moments, Server(batching, 16)).max_rate_rps for batching in ("static", "mixed")]
    assert rates == pytest.approx([16 / 2.952] * 2)


def test_waves_lose_the_longest_over_the_mean() -> None:
    """With constant steps the capacities differ by E[max] / E[O], 3.2587 for 16 geometric outputs of mean 10."""
    moments, step = lengths(1, 10), LinearStepTime(0.02, 0, 0, 0, 0)
    static, mixed = (capacity(step, moments, Server(batching, 16)).max_rate_rps for batching in ("static", "mixed"))
    assert mixed / static == pytest.approx(continuous_over_static(10, 16), rel=0.01)


def test_compute_is_named_where_nothing_else_limits() -> None:
    """With unlimited slots only the work itself is left: 1 / w = 16.8 requests a second."""
    found = capacity(LinearStepTime(0.02, 2e-5, 0, 5e-4, 0), lengths(500, 100), Server("mixed", 10_000))
    assert found.binding == "compute"
    assert found.limits_rps["compute"] == pytest.approx(1 / 0.0595)
