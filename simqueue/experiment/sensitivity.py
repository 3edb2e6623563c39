"""How strongly results react to a key: central differences on common random numbers.

The scenario runs with the key a bit lower and a bit higher, with the same seeds, so that both see the same random
numbers. The difference of each replication over the distance is one value of the derivative, and the interval is that
over the replications. A central difference is off by a term of the second order in the step; that is not in the
interval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from simqueue.errors import InputError
from simqueue.execution import Workers, opened
from simqueue.experiment.comparing import why_no_values, without_noise
from simqueue.experiment.metric_names import check_names, numeric_columns
from simqueue.experiment.replication import Progress
from simqueue.experiment.runner import as_resolved, run
from simqueue.names import unknown
from simqueue.results.result import Result
from simqueue.scenario.values import dotted, leaves
from simqueue.statistics.intervals import mean_interval

DEFAULT_METRICS = ("mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms", "request_throughput")
REPLICATIONS = 20
_NOT_OF_THE_SERVER = ("seed", "replications")
STEP = 0.05
"""Relative step of keys that are not whole numbers; whole numbers are changed by 1."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The derivative of a metric with respect to a key.

    Attributes
    ----------
    policy, metric, key : str
    at, below, above : float
        Value of the key in the scenario, and those of the two runs.
    derivative, low, high : float or None
        Unit of the metric per unit of the key, with its interval; None if it is not known.
    reason : str
        Why it is not known; empty if it is.
    """

    policy: str
    metric: str
    key: str
    at: float
    below: float
    above: float
    derivative: float | None
    low: float | None
    high: float | None
    reason: str

    def plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def sensitivity(
    scenario: str | Path | Mapping[str, Any],
    to: Sequence[str],
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    replications: int | None = None,
    step: float = STEP,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    workers: Workers = None,
) -> list[Sensitivity]:
    """Return the derivatives of metrics with respect to keys of a scenario.

    Parameters
    ----------
    scenario, overrides, seed, progress, workers
        As for `run`; a file, a name or keys.
    to : sequence of str
        Dotted keys with a number, such as ``workload.arrivals.rate_rps`` or ``policies.one.max_num_seqs``.
    metrics : sequence of str
        Columns of the summary.
    replications : int, optional
        At least 2; by default those of the scenario, and 20 if it has one.
    step : float
        Relative step of keys that are not whole numbers, > 0 and < 1.

    Raises
    ------
    InputError
        If the scenario is wrong, a name is unknown, or a key has no number.
    """
    if not 0 < step < 1:
        raise InputError(f"step = {step:g}: must be > 0 and < 1")
    resolved = as_resolved(scenario, overrides, seed)
    check_names(resolved.policy_names, None, metrics, numeric_columns(resolved))
    usual = REPLICATIONS if resolved.replications == 1 else resolved.replications
    wanted = usual if replications is None else replications
    if wanted < 2:
        raise InputError(f"replications = {wanted}: must be at least 2, because intervals need several")
    common = [*overrides, "precision=null", f"replications={wanted}"]
    all_ends = [(key, _ends(resolved.values, key, step)) for key in to]
    found: list[Sensitivity] = []
    with opened(workers) as where:
        runs = partial(run, scenario, seed=seed, progress=progress, workers=where)
        for key, ends in all_ends:
            results = [runs(overrides=[*common, f"{key}={json.dumps(end)}"]) for end in ends[1:]]
            found += [
                _derivative(policy, metric, key, ends, results)
                for policy in resolved.policy_names
                for metric in metrics
            ]
    return found


def _ends(values: Mapping[str, Any], key: str, step: float) -> tuple[float, float, float]:
    """Return the value of a key, one below and one above."""
    numbers = {dotted(path): value for path in leaves(values) if _is_number(value := _at(values, path))}
    numbers = {name: value for name, value in numbers.items() if name not in _NOT_OF_THE_SERVER}
    if key not in numbers:
        raise InputError(f"sensitivity: {unknown('key with a number', key, numbers)}")
    at = numbers[key]
    if at == 0:
        raise InputError(f"{key} = 0: has no relative step; sensitivities need a value other than 0")
    off = 1 if isinstance(at, int) else step * abs(at)
    if isinstance(at, int) and at <= 1:
        raise InputError(f"{key} = {at}: must be at least 2, because one less is tried")
    return at, at - off, at + off


def _at(values: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        values = values[part]
    return values


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _derivative(
    policy: str, metric: str, key: str, ends: tuple[float, float, float], results: Sequence[Result]
) -> Sensitivity:
    below, above = (result.values(policy, metric) for result in results)
    pairs = [(low, high) for low, high in zip(below, above, strict=True) if low is not None and high is not None]
    reason = ""
    if len(pairs) < len(below):
        gap = next(result for result in results if None in result.values(policy, metric))
        reason = f"a run has no value: {why_no_values(gap, [policy], metric)}"
    elif len(pairs) < 2:
        reason = "nothing in the traffic is random, so there is no interval"
    if reason:
        return Sensitivity(policy, metric, key, *ends, None, None, None, reason)
    lows, highs = zip(*pairs, strict=True)
    changes = [high - low for low, high in zip(lows, without_noise(highs, lows), strict=True)]
    found = mean_interval([change / (ends[2] - ends[1]) for change in changes])
    return Sensitivity(policy, metric, key, *ends, found.value, found.low, found.high, "")
