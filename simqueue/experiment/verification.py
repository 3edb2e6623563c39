"""Comparison of the simulation with queueing theory: cases with an exact theory, and when the two agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simqueue.execution import Workers
from simqueue.experiment.matching import predict
from simqueue.experiment.replication import Progress
from simqueue.experiment.runner import run
from simqueue.scenario.load import from_mapping
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.intervals import Interval, mean_interval
from simqueue.statistics.power import mean_test

SIGNIFICANCE = 0.05
"""Probability of a false alarm in any of the rows that are looked at together; each row gets an equal share."""
POWER = 0.9
"""Probability with which an error of the size that a row says it can detect is found."""
LARGEST_ERROR = 0.05
"""A row whose detectable error is above this share of the theory has too few runs to agree."""
REPLICATIONS = 40
"""Replications of the built-in cases, which need no more requests for it: many short runs have more power than few."""
_ROUNDING = 1e-9

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


_TWO_PROMPTS = {"distribution": "empirical", "values": [200, 800], "weights": [0.8, 0.2]}
_PLAIN = {"kv_cache": {"layout": "paged", "block_size": 16, "blocks": 1_000_000}, "warmup_s": 10.0}


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
        "workload": _poisson(12, _TWO_PROMPTS, _constant(1), 4000),
        **_continuous(1),
    },
    "shortest-prompt-first": {
        **_PLAIN,
        **_linear(0.01, 0.0, 5e-5),
        "workload": _poisson(20, _TWO_PROMPTS, _constant(1), 4500),
        **_continuous(1, order="shortest_prompt"),
    },
    "equal-prompts": {
        **_PLAIN,
        **_linear(0.01, 0.0, 5e-5),
        "workload": _poisson(14, _constant(400), _constant(1), 3600),
        **_continuous(1),
    },
    "one-at-a-time": {
        **_PLAIN,
        **_linear(0.02, 5e-4, 2e-5),
        "workload": _poisson(1.2, _constant(500), _constant(20), 4200),
        **_continuous(1),
        "warmup_s": 30.0,
    },
    "geometric-outputs-alone": {
        **_PLAIN,
        **_steps(0.05),
        "workload": _poisson(4, _constant(1), _geometric(2), 7200),
        **_continuous(1),
    },
    "two-slots": {
        **_PLAIN,
        **_steps(0.05),
        "workload": _poisson(10, _constant(1), _geometric(2), 5000),
        **_continuous(2),
    },
    "eight-slots": {
        **_PLAIN,
        **_steps(0.05),
        "workload": _poisson(48, _constant(1), _geometric(2), 3800),
        **_continuous(8),
    },
    "slots-for-all": {
        **_PLAIN,
        **_steps(0.02),
        "workload": _poisson(20, _constant(1), {"distribution": "uniform", "low": 20, "high": 80}, 1000),
        **_continuous(256),
    },
    "shared-decoding": {
        **_PLAIN,
        **_linear(0.02, 0.001, 0.0),
        "workload": _poisson(2, _constant(1), {"distribution": "lognormal", "mean": 200, "cv": 1.0}, 2200),
        **_continuous(512),
        "warmup_s": 50.0,
    },
    "waves": {
        **_PLAIN,
        **_linear(0.02, 5e-4, 2e-5),
        "workload": _poisson(4, _constant(500), _constant(100), 1000),
        "policies": {"static": {"scheduler": "static", "max_num_seqs": 16}},
        "warmup_s": 50.0,
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
    detectable : float or None
        Smallest error, as a share of the theory, that these runs would find with probability `POWER`; None without a
        theory, and with fewer than two replications.
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
    detectable: float | None
    verdict: str
    note: str = ""


def case_scenario(name: str, *, seed: int = 1, replications: int = REPLICATIONS) -> Scenario:
    """Return one of the built-in cases as a scenario."""
    return from_mapping({"name": name, "seed": seed, "replications": replications, **CASES[name]})


def rows_of(scenarios: Iterable[ResolvedScenario]) -> int:
    """Return the number of means of these scenarios that have an exact theory."""
    return sum(len(predict(one, policy).values) for one in scenarios for policy in one.policies)


def verify(
    scenario: Scenario | ResolvedScenario,
    *,
    rows: int | None = None,
    workers: Workers = None,
    progress: Progress | None = None,
) -> Iterator[Verified]:
    """Run a scenario and yield the comparison of its means with exact theory, for each policy and metric.

    Parameters
    ----------
    scenario : Scenario or ResolvedScenario
        With several replications; with one there is no verdict.
    rows : int, optional
        Number of means that are looked at together, of this scenario and of others; by default its own.
    workers : int or Executor, optional
        As for `run`.
    progress : callable, optional
        See `Progress`.
    """
    scenario = scenario.resolve() if isinstance(scenario, Scenario) else scenario
    predictions = {policy.name: predict(scenario, policy) for policy in scenario.policies}
    together = rows_of([scenario]) if rows is None else rows
    if any(found.values for found in predictions.values()):
        result = run(scenario, workers=workers, progress=progress)
    for policy, found in predictions.items():
        if not found.values:
            yield Verified(scenario.name, policy, "", "", None, None, None, NO_THEORY, found.why_not)
        for metric, theory in found.values.items():
            values = [value for value in result.values(policy, metric) if value is not None]
            judged = judge(values, theory, rows=together, error=found.error)
            simulated = mean_interval(values, result.confidence) if values else None
            yield Verified(scenario.name, policy, found.model, metric, theory, simulated, *judged)


def judge(values: Sequence[float], theory: float, *, rows: int = 1, error: float = 0.0) -> tuple[float | None, str]:
    """Return the smallest error that can be detected, as a share of the theory, and the verdict.

    Parameters
    ----------
    values : sequence of float
        One per replication.
    theory : float
    rows : int
        Number of means that are looked at together.
    error : float
        Largest error of the theory itself, as a share of it.
    """
    if len(values) < 2:
        return None, NOT_ENOUGH
    test = mean_test(values, significance=SIGNIFICANCE / rows, power=POWER)
    own = (error + _ROUNDING) * abs(theory)
    differs = abs(test.mean - theory) > own + test.tolerated
    smallest = own + test.detectable
    share = smallest / abs(theory) if theory else math.inf if smallest else 0.0
    return share, DIFFERS if differs else AGREES if share <= LARGEST_ERROR else NOT_ENOUGH
