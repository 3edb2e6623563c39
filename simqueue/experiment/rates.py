"""The policies of a scenario at several arrival rates: curves of the capacity law, and simulated points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simqueue.errors import InputError
from simqueue.execution import Workers, opened
from simqueue.experiment.build import build_all
from simqueue.experiment.demand import Offered, asked_of, offered
from simqueue.experiment.policy_load import PolicyLoad, loaded
from simqueue.experiment.replication import Progress
from simqueue.experiment.runner import run
from simqueue.experiment.served import limits_of, served
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.result import Result
from simqueue.results.steadiness import unsteady
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.intervals import Interval, mean_interval
from simqueue.workload.arrivals.settings import AllAtOnceSettings
from simqueue.workload.build import build_arrivals

SHARES = (0.3, 0.5, 0.7, 0.8, 0.9, 1.05)
"""Simulated rates, as shares of the smallest and of the largest capacity."""
_WARM_UP_SHARE = 0.2
METRICS = ("request_throughput", "mean_tpot_ms", "mean_ttft_ms")


@dataclass(frozen=True, slots=True)
class Curve:
    """The estimates of the capacity law for one policy, over the arrival rate; None if there is no estimate.

    Attributes
    ----------
    policy : str
    capacity_rps : float
    rates_rps : tuple of float
    values : dict of metric to tuple of float or None
        By the names of the summary's columns.
    """

    policy: str
    capacity_rps: float
    rates_rps: tuple[float, ...]
    values: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class Point:
    """One policy, simulated at one rate. A metric is None if it is undefined or if the run is overloaded."""

    policy: str
    rate_rps: float
    overloaded: bool
    values: dict[str, Interval | None]


def curves(scenario: ResolvedScenario, points: int = 60) -> list[Curve]:
    """Return the curve of every policy that the capacity law describes.

    Raises
    ------
    InputError
        If the workload has no rate.
    """
    load = _offered(scenario)
    found = []
    built = build_all(scenario)
    for policy in scenario.policies:
        if policy.fleet is not None:
            continue
        by = served(scenario, policy, built[policy.name])
        if by is None:
            continue
        try:
            asked = asked_of(built[policy.name], load)
            limits = limits_of(policy.step_time, by, asked)
        except InputError:
            continue  # without a capacity there is no curve; the table says why
        capacity_rps = limits.whole.capacity.max_rate_rps
        rates = (np.linspace(0.02, 1.2, points) * capacity_rps).tolist()
        loads = [loaded(policy.step_time, by, replace(asked, rate_rps=rate), known=limits) for rate in rates]
        found.append(Curve(policy.name, capacity_rps, tuple(rates), _values(loads, rates)))
    return found


def simulated(
    scenario: ResolvedScenario,
    rates_rps: Sequence[float],
    *,
    replications: int,
    requests: int,
    workers: Workers = None,
    progress: Progress | None = None,
) -> list[Point]:
    """Simulate every policy at each rate. The first fifth of the time is warm-up.

    Parameters
    ----------
    scenario : Scenario
        Its arrivals must have a `rate_rps`.
    rates_rps : sequence of float
    replications, requests : int
        Replications at each rate, and requests per replication.
    workers : int or Executor, optional
        As for `run`.
    progress : callable, optional
        See `Progress`; it counts rates.
    """
    _offered(scenario)
    points = []
    with opened(workers) as where:
        for done, rate in enumerate(rates_rps):
            if progress is not None:
                progress("rates", done, len(rates_rps))
            varied = scenario.with_(
                rate_rps=rate,
                num_requests=requests,
                replications=replications,
                precision=None,
                horizon_s=None,
                warmup_s=_WARM_UP_SHARE * requests / rate,
            )
            result = run(varied, workers=where)
            points += [
                _point(result, str(row["policy"]), rate, unsteady(row))
                for row in result.summary_rows
                if row["request_class"] == ALL_CLASSES
            ]
    return points


def saturation_throughput(
    scenario: ResolvedScenario,
    policy: str,
    *,
    requests: int,
    replications: int,
    middle: tuple[float, float] = (0.2, 0.8),
    workers: Workers = None,
) -> Interval:
    """Return the throughput of a policy if all requests arrive at time 0, in requests per second.

    Parameters
    ----------
    scenario : Scenario
        With synthetic lengths.
    policy : str
    requests, replications : int
    middle : (float, float)
        The rate is measured between these shares of the completions, without filling and draining.
    workers : int or Executor, optional
        As for `run`.
    """
    varied = scenario.with_(
        policies=[policy],
        arrivals=AllAtOnceSettings(process="all_at_once"),
        num_requests=requests,
        replications=replications,
        precision=None,
        horizon_s=None,
        warmup_s=0.0,
    )
    result = run(varied, workers=workers)
    rates = []
    for one in result.runs:
        finish_s = np.sort(one.recording.requests["finish_s"])
        low, high = int(middle[0] * requests), int(middle[1] * requests)
        rates.append(float((high - low) / (finish_s[high] - finish_s[low])))
    return mean_interval(rates, result.confidence)


def _offered(scenario: ResolvedScenario) -> Offered:
    arrivals = scenario.workload.arrivals if scenario.workload is not None else None
    if arrivals is None or build_arrivals(arrivals, scenario.base_dir).mean_rate_rps is None:
        raise InputError("curves over the arrival rate need workload.arrivals with a rate_rps")
    load = offered(scenario)
    if load is None:
        raise InputError("the workload has no requests")
    return load


def _values(loads: Sequence[PolicyLoad], rates: Sequence[float]) -> dict[str, tuple[float | None, ...]]:
    throughputs = [
        min(rate, found.capacity.max_rate_rps) if found.capacity else None
        for found, rate in zip(loads, rates, strict=True)
    ]
    points = [found.estimate for found in loads]
    return {
        "request_throughput": tuple(throughputs),
        "mean_tpot_ms": tuple(1000 * one.tpot_s if one else None for one in points),
        "mean_ttft_ms": tuple(1000 * one.ttft_s if one else None for one in points),
    }


def _point(result: Result, policy: str, rate: float, overloaded: bool) -> Point:
    values: dict[str, Interval | None] = {}
    for metric in METRICS:
        own = result.values(policy, metric)
        known = [value for value in own if value is not None]
        hidden = len(known) < len(own) or (overloaded and metric != "request_throughput")
        values[metric] = None if hidden else mean_interval(known)
    return Point(policy, rate, overloaded, values)
