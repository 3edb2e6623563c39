"""Comparison of the simulation with queueing theory: cases with an exact theory, and when the two agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simqueue.experiment.matching import predict
from simqueue.experiment.replication import Progress
from simqueue.experiment.runner import run
from simqueue.results.result import Result
from simqueue.scenario.load import from_mapping
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.intervals import Interval, mean_interval

HALF_WIDTHS = 3.0
RELATIVE = 0.02
"""A mean agrees if it is within this many half-widths of its interval, or within this share of the theory."""
WIDEST = 0.03
"""If the half-width exceeds this share of the theory, there are not enough runs for a verdict."""

AGREES, DIFFERS, NOT_ENOUGH, NO_THEORY = "agrees", "DIFFERS", "not enough runs", "no exact theory"


def _poisson(rate: float, prompt: Any, output: Any, requests: int) -> dict[str, Any]:
    return {
        "arrivals": {"process": "poisson", "rate_rps": rate},
        "prompt_tokens": prompt,
        "output_tokens": output,
        "num_requests": requests,
    }


def _constant(value: int) -> dict[str, Any]:
    return {"distribution": "constant", "value": value}


def _geometric(mean: float) -> dict[str, Any]:
    return {"distribution": "geometric", "mean": mean}


_TWO_PROMPTS = {"distribution": "empirical", "values": [200, 4000], "weights": [0.9, 0.1]}
_PLAIN = {"kv_cache": {"layout": "paged", "block_size": 16, "blocks": 1_000_000}, "warmup_s": 50.0}


def _continuous(slots: int, **more: Any) -> dict[str, Any]:
    budget = {"max_num_batched_tokens": 1_000_000}
    return {"policies": {"continuous": {"scheduler": "continuous", "max_num_seqs": slots, **budget, **more}}}


def _linear(a: float, b: float, c: float) -> dict[str, Any]:
    return {"step_time": {"kind": "linear", "overhead_s": a, "per_decode_s": b, "per_prefill_token_s": c}}


def _steps(seconds: float) -> dict[str, Any]:
    return {"step_time": {"kind": "constant", "seconds": seconds}}


CASES: Mapping[str, Mapping[str, Any]] = {
    "one-token-outputs": {
        **_PLAIN,
        **_linear(0.01, 0.0, 5e-5),
        "workload": _poisson(10, _TWO_PROMPTS, _constant(1), 20_000),
        **_continuous(1),
    },
    "shortest-prompt-first": {
        **_PLAIN,
        **_linear(0.01, 0.0, 5e-5),
        "workload": _poisson(15, _TWO_PROMPTS, _constant(1), 20_000),
        **_continuous(1, order="shortest_prompt"),
    },
    "equal-prompts": {
        **_PLAIN,
        **_linear(0.01, 0.0, 5e-5),
        "workload": _poisson(25, _constant(400), _constant(1), 20_000),
        **_continuous(1),
    },
    "one-at-a-time": {
        **_PLAIN,
        **_linear(0.02, 5e-4, 2e-5),
        "workload": _poisson(0.2, _constant(500), _constant(100), 10_000),
        **_continuous(1),
    },
    "geometric-outputs-alone": {
        **_PLAIN,
        **_steps(0.001),
        "workload": _poisson(4, _constant(1), _geometric(100), 20_000),
        **_continuous(1),
    },
    "two-slots": {
        **_PLAIN,
        **_steps(0.1),
        "workload": _poisson(1.0, _constant(1), _geometric(10), 20_000),
        **_continuous(2),
    },
    "eight-slots": {
        **_PLAIN,
        **_steps(0.1),
        "workload": _poisson(4, _constant(1), _geometric(10), 10_000),
        **_continuous(8),
    },
    "slots-for-all": {
        **_PLAIN,
        **_steps(0.02),
        "workload": _poisson(20, _constant(1), {"distribution": "uniform", "low": 20, "high": 80}, 8_000),
        **_continuous(256),
    },
    "shared-decoding": {
        **_PLAIN,
        **_linear(0.02, 0.001, 0.0),
        "workload": _poisson(2, _constant(1), {"distribution": "lognormal", "mean": 200, "cv": 1.0}, 3_000),
        **_continuous(512),
    },
    "waves": {
        **_PLAIN,
        **_linear(0.02, 5e-4, 2e-5),
        "workload": _poisson(4, _constant(500), _constant(100), 6_000),
        "policies": {"static": {"scheduler": "static", "max_num_seqs": 16}},
    },
}
"""Cases with an exact theory: name -> keys of a scenario with one policy."""


@dataclass(frozen=True, slots=True)
class Verified:
    """One metric of one policy.

    Attributes
    ----------
    case, policy, model, metric : str
    theory : float or None
    simulated : Interval or None
    verdict : str
        agrees, DIFFERS, not enough runs, or no exact theory.
    note : str
        Why there is no exact theory.
    """

    case: str
    policy: str
    model: str
    metric: str
    theory: float | None
    simulated: Interval | None
    verdict: str
    note: str = ""


def case_scenario(name: str, *, seed: int = 1, replications: int = 1) -> Scenario:
    """Return one of the built-in cases as a scenario."""
    return from_mapping({"name": name, "seed": seed, "replications": replications, **CASES[name]})


def verify(
    scenario: Scenario | ResolvedScenario, *, workers: int | None = None, progress: Progress | None = None
) -> Iterator[Verified]:
    """Run a scenario and yield the comparison of its means with exact theory, for each policy and metric.

    Parameters
    ----------
    scenario : Scenario or ResolvedScenario
        With several replications; with one there is no verdict.
    workers : int, optional
        Number of processes.
    progress : callable, optional
        See `Progress`.
    """
    scenario = scenario.resolve() if isinstance(scenario, Scenario) else scenario
    predictions = {policy.name: predict(scenario, policy) for policy in scenario.policies}
    if any(found.values for found in predictions.values()):
        result = run(scenario, workers=workers, progress=progress)
    for policy, found in predictions.items():
        if not found.values:
            yield Verified(scenario.name, policy, "", "", None, None, NO_THEORY, found.why_not)
        for metric, theory in found.values.items():
            simulated = _simulated(result, policy, metric)
            yield Verified(scenario.name, policy, found.model, metric, theory, simulated, verdict(theory, simulated))


def _simulated(result: Result, policy: str, metric: str) -> Interval | None:
    """Return the mean of a metric over the replications of a policy; None if no replication has a value."""
    rows = [row for row in result.replication_rows if row["policy"] == policy]
    values = [float(value) for row in rows if isinstance(value := row[metric], int | float)]
    return mean_interval(values, result.confidence) if values else None


def verdict(theory: float, simulated: Interval | None) -> str:
    """Return whether a simulated mean agrees with theory; see `HALF_WIDTHS`, `RELATIVE` and `WIDEST`."""
    if simulated is None or simulated.half_width is None or simulated.half_width > WIDEST * abs(theory):
        return NOT_ENOUGH
    allowed = max(HALF_WIDTHS * simulated.half_width, RELATIVE * abs(theory))
    return AGREES if abs(simulated.mean - theory) <= allowed else DIFFERS
