"""Special cases of serving that queueing theory solves, through the real scheduler, KV cache and recorder.

Each runs at a load of 0.8 or less with ten fixed seeds; the mean of the seeds lies within four standard errors. Those
are 1 to 6 % of a latency, and 2 to 17 % of a wait for a slot: larger errors are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.experiment.matching import predict
from simqueue.experiment.verification import CASES
from simqueue.results.result import Result
from simqueue.scenario import from_mapping
from simqueue.statistics.intervals import mean_interval, student_t
from simqueue.theory.bulk import slotted_continuous
from simqueue.theory.renewal import gamma_m1_mean_sojourn
from simqueue.theory.sharing import shared_decoding
from simqueue.theory.single_server import md1_wait_quantile

from .oracles import affine_steps

SEEDS = 10
POOL = {"layout": "paged", "block_size": 16, "blocks": 1_000_000}


def played(scenario: dict[str, Any], **more: Any) -> Result:
    """Run ten replications of a scenario; the long runs of this file leave out the checks after every step."""
    return sq.run({**scenario, "replications": SEEDS, **more}, check=False, workers=1)


def column(result: Result, name: str) -> list[float]:
    """Return one value a replication."""
    return [float(row[name]) for row in result.replication_rows]


def z(values: Sequence[float], theory: float) -> float:
    """Return how many standard errors the mean is away from theory."""
    found = mean_interval(values)
    if not found.half_width:
        return 0.0 if found.value == pytest.approx(theory, rel=1e-9) else np.inf
    return (found.value - theory) / (found.half_width / student_t(found.n))


def poisson(rate: float, prompt: Any, output: Any, requests: int) -> dict[str, Any]:
    """Return a workload with Poisson arrivals."""
    return {
        "arrivals": {"process": "poisson", "rate_rps": rate},
        "prompt_tokens": prompt,
        "output_tokens": output,
        "num_requests": requests,
    }


def constant(value: int) -> dict[str, Any]:
    """Return a constant length."""
    return {"distribution": "constant", "value": value}


def geometric(mean: float) -> dict[str, Any]:
    """Return a geometric distribution."""
    return {"distribution": "geometric", "mean": mean}


def continuous(slots: int) -> dict[str, Any]:
    """Return a policy that only slots limit."""
    return {"p": {"scheduler": "continuous", "max_num_seqs": slots, "max_num_batched_tokens": 1_000_000}}


def linear(a: float, b: float, c: float) -> dict[str, Any]:
    """Return a linear step time."""
    return {"kind": "linear", "overhead_s": a, "per_decode_s": b, "per_prefill_token_s": c}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_the_cases_of_verify(name: str) -> None:
    """Every built-in case agrees with its theory in every metric, with ten of the runs of `simqueue verify`."""
    scenario = dict(CASES[name])
    resolved = from_mapping(scenario).resolve()
    predicted = predict(resolved, resolved.policies[0])
    assert predicted.values
    result = played(scenario)
    assert {metric: round(z(column(result, metric), value), 2) for metric, value in predicted.values.items()} == {
        metric: pytest.approx(0, abs=4) for metric in predicted.values
    }


def test_the_whole_distribution_of_md1() -> None:
    """Equal prompts, one token each: the median and the 90th percentile of the wait are those of M/D/1."""
    scenario = {
        "step_time": linear(0.01, 0, 5e-5),
        "kv_cache": POOL,
        "workload": poisson(20, constant(400), constant(1), 4000),
        "policies": continuous(1),
        "warmup_s": 20.0,
    }
    result = played(scenario)
    for q in (0.5, 0.9):
        waits_ms = [
            float(
                np.percentile(
                    (r.recording.requests["first_scheduled_s"] - r.recording.requests["arrival_s"])[400:], 100 * q
                )
            )
            for r in result.runs
        ]
        assert abs(z(waits_ms, md1_wait_quantile(20, 0.03, q))) < 4


def test_case_50_waits_of_one_slot() -> None:
    """One slot, 1 ms steps, 7 requests a second, outputs of mean 100: 0.2322 s geometric, 0.1167 s constant."""
    for output, theory_ms in ((geometric(100), 232.17), (constant(100), 116.67)):
        scenario = {
            "step_time": {"kind": "constant", "seconds": 0.001},
            "kv_cache": POOL,
            "workload": poisson(7, constant(1), output, 3000),
            "policies": continuous(1),
            "warmup_s": 86.0,
        }
        assert abs(z(column(played(scenario), "mean_queue_ms"), theory_ms)) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "slots"), [(6.0, 8), (1.4, 2), (0.7, 1)])
def test_constant_steps_and_geometric_outputs(rate: float, slots: int) -> None:
    """Waits, busy share and mean batch are those of the chain of slots in steps."""
    scenario = {
        "step_time": {"kind": "constant", "seconds": 0.1},
        "kv_cache": POOL,
        "workload": poisson(rate, constant(1), geometric(10), 4000),
        "policies": continuous(slots),
        "warmup_s": 400 / rate,
    }
    result, theory = played(scenario), slotted_continuous(rate, slots, 10, 0.1)
    assert abs(z(column(result, "mean_queue_ms"), 1000 * theory.mean_wait_s)) < 4
    assert abs(z(column(result, "mean_e2el_ms"), 1000 * theory.mean_sojourn_s)) < 4
    assert abs(z(column(result, "gpu_busy_share"), theory.busy_share)) < 4
    assert abs(z(column(result, "mean_batch"), theory.mean_batch)) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "slots", "requests"), [(5.0, 8, 3000), (9.0, 16, 3000), (7.446809, 8, 4000)])
def test_affine_steps_with_prefill(rate: float, slots: int, requests: int) -> None:
    """Prompts of 500, geometric outputs of 20: TTFT, ITL and E2EL are those of the exact two-dimensional chain."""
    scenario = {
        "step_time": linear(0.02, 0.001, 5e-5),
        "kv_cache": POOL,
        "workload": poisson(rate, constant(500), geometric(20), requests),
        "policies": continuous(slots),
        "warmup_s": 600 / rate,
    }
    result = played(scenario)
    theory = affine_steps(rate, slots, 20, 500, 0.02, 0.001, 5e-5, most=110)
    assert abs(z(column(result, "mean_ttft_ms"), 1000 * theory.ttft_s)) < 4
    assert abs(z(column(result, "mean_itl_ms"), 1000 * theory.itl_s)) < 4
    assert abs(z(column(result, "mean_e2el_ms"), 1000 * theory.e2el_s)) < 4


def test_free_slots_have_uniform_ttft() -> None:
    """Slots for all: TTFT is uniform between one and two steps, and the batch a Poisson number of mean 20."""
    scenario = {
        "step_time": {"kind": "constant", "seconds": 0.02},
        "kv_cache": POOL,
        "workload": poisson(20, constant(1), geometric(50), 3000),
        "policies": continuous(256),
        "warmup_s": 10.0,
    }
    result = played(scenario)
    ttft_s = np.concatenate(
        [(r.recording.requests["first_token_s"] - r.recording.requests["arrival_s"])[300:] for r in result.runs]
    )
    assert np.percentile(ttft_s, [1, 50, 99]) == pytest.approx([0.0202, 0.03, 0.0398], abs=2e-4)
    assert ttft_s.min() >= 0.02 - 1e-9
    assert ttft_s.max() <= 0.04 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "output",
    [
        constant(200),
        geometric(200),
        {"distribution": "lognormal", "mean": 200.5, "cv": 1.0},
        {"distribution": "uniform", "low": 1, "high": 399},
    ],
    ids=["constant", "geometric", "lognormal", "uniform"],
)
def test_the_law_of_outputs_does_not_matter_without_limits(output: dict[str, Any]) -> None:
    """Four distributions of mean 200 have the ITL and the E2EL of generalised processor sharing."""
    scenario = {
        "step_time": linear(0.02, 0.001, 0),
        "kv_cache": POOL,
        "workload": poisson(2, constant(1), output, 1500),
        "policies": continuous(1000),
        "warmup_s": 60.0,
    }
    result, theory = played(scenario), shared_decoding(2, 200, 0.02, 0.001)
    assert abs(z(column(result, "mean_tpot_ms"), 1000 * theory.itl_s)) < 4
    assert abs(z(column(result, "mean_e2el_ms"), 1000 * theory.e2el_s)) < 4


@pytest.mark.parametrize("users", [1, 4, 16, 64])
def test_users_without_think_time(users: int) -> None:
    """A backlog through N slots is N users without think time: constant lengths give X = N / (a O + N w) exactly."""
    a, b, c, prompt, output = 0.02, 5e-4, 2e-5, 500, 100
    scenario = {
        "step_time": linear(a, b, c),
        "kv_cache": POOL,
        "workload": {
            "arrivals": {"process": "all_at_once"},
            "prompt_tokens": constant(prompt),
            "output_tokens": constant(output),
            "num_requests": 10 * users,
        },
        "policies": continuous(users),
    }
    result = sq.run(scenario)
    work = b * (output - 1) + c * prompt
    expected = users / (a * output + users * work)
    assert result.summary_rows[0]["request_throughput"] == pytest.approx(expected, rel=1e-9)
    assert expected == pytest.approx({1: 0.4856, 4: 1.7873, 16: 5.4201, 64: 11.0193}[users], abs=5.1e-5)


@pytest.mark.parametrize("output", [geometric(100), {"distribution": "uniform", "low": 1, "high": 60}])
@pytest.mark.parametrize("users", [1, 4, 16])
def test_users_without_think_time_whatever_the_outputs(users: int, output: dict[str, Any]) -> None:
    """While requests wait the rate is exactly N / (a O + N w), where O is the mean number of tokens per request."""
    a, b, c, prompt = 0.02, 5e-4, 2e-5, 500
    scenario = {
        "step_time": linear(a, b, c),
        "kv_cache": POOL,
        "workload": {
            "arrivals": {"process": "all_at_once"},
            "prompt_tokens": constant(prompt),
            "output_tokens": output,
            "num_requests": 300,
        },
        "policies": continuous(users),
    }
    steps = sq.run(scenario).steps
    full = steps[steps["waiting"] > 0]
    assert ((full["decode_seqs"] + full["prefill_seqs"]) == users).all()
    admitted, time_s = int(full["prefill_seqs"].sum()), float(full["duration_s"].sum())
    tokens = users * int(full["repeat"].sum()) / admitted
    expected = users / (a * tokens + users * (b * (tokens - 1) + c * prompt))
    assert admitted / time_s == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("burstiness", [0.25, 4.0])
def test_gamma_arrivals_at_one_exponential_server(burstiness: float) -> None:
    """Gamma gaps and geometric prompts of mean 1,000 at one slot are GI/M/1, whose mean sojourn time is known."""
    sojourns = []
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 99])
        arrivals = np.cumsum(rng.gamma(burstiness, 1 / (10 * burstiness), 3000))
        prompts = rng.geometric(1 / 1000, 3000)
        rows = [
            {"arrival_s": at_s, "prompt_tokens": prompt, "output_tokens": 1}
            for at_s, prompt in zip(arrivals.tolist(), prompts.tolist(), strict=True)
        ]
        scenario = {
            "step_time": linear(1e-9, 0, 6e-5),
            "kv_cache": POOL,
            "workload": {"requests": rows},
            "policies": continuous(1),
            "warmup_s": 60.0,
        }
        sojourns.append(float(sq.run(scenario, check=False).summary_rows[0]["mean_e2el_ms"]))
    assert abs(z(sojourns, 1000 * gamma_m1_mean_sojourn(10, 1 / 0.06, burstiness))) < 4
