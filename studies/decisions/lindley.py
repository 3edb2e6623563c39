"""The search of a capacity on waits of one seat that are computed by Lindley's recursion, and not by the engine.

It has the search, its rules, its intervals and the random numbers of the engine as they are, and takes a hundredth of
the time: so there can be many repetitions.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.decisions.budget import Budget
from simqueue.decisions.conditions import Condition, parse_conditions
from simqueue.decisions.judgement import Judged, Judgement, Verdict
from simqueue.decisions.saturation import StableRate
from simqueue.decisions.search import Found, Search, Wanted
from simqueue.decisions.traffic import WARM_UP
from simqueue.decisions.trials import Point, Size, Trials
from simqueue.errors import InputError
from simqueue.results.doubts import in_doubt
from simqueue.results.samples import Samples
from simqueue.scenario.load import from_mapping
from simqueue.statistics.estimate import estimate
from simqueue.workload.arrivals.renewal import PoissonArrivals
from simqueue.workload.build import build_lengths
from simqueue.workload.streams import stream
from studies.decisions.exact import OneSeat, Problem

Floats = NDArray[np.float64]
PERCENTILE: Final = 90.0
COLUMN: Final = "p90_ttft_ms"
_MOST_RUNS: Final = 600


class _Traffic:
    """Poisson arrivals in a steady state."""

    steady, random, unit, rate_rps = True, True, "requests/s", 1.0


class _Values(Samples):
    """The TTFT of some runs."""

    def __init__(self, values_ms: list[Floats]) -> None:
        super().__init__([])
        self._values_ms = values_ms

    def of(self, metric: str) -> list[Floats]:
        """Return the values of TTFT, and of nothing else."""
        return self._values_ms if metric == "ttft" else []


class _Waits(Trials):
    """Runs of one seat."""

    def __init__(self, problem: Problem, one: OneSeat, seed: int) -> None:
        self.traffic: Any = _Traffic()
        self._condition = Condition(COLUMN, at_most=True, limit=one.limit_ms)
        self.conditions = parse_conditions([str(self._condition)])
        self.budget = Budget(_MOST_RUNS, None)
        self.policy = "one"
        self.points: dict[tuple[float, Size], Point] = {}
        self._one, self._seed = one, seed
        workload = from_mapping(problem.keys).resolve().workload
        if workload is None or workload.output_tokens is None:
            raise InputError(f"{problem.name}: has no single workload with lengths")
        self._outputs = build_lengths(workload.output_tokens, Path())
        self._drawn = lru_cache(maxsize=64)(self._draw)

    def at(self, rate_rps: float, size: Size) -> Point:
        """See `Trials.at`."""
        if (rate_rps, size) not in self.points:
            self.budget.check(size.replications)
            self.budget.runs += size.replications
            runs = [self._ttft_ms(rate_rps, size.requests, number) for number in range(size.replications)]
            self.points[rate_rps, size] = self._judged(rate_rps, size, runs)
        return self.points[rate_rps, size]

    def _draw(self, requests: int, number: int) -> tuple[Floats, NDArray[Any]]:
        arrived = PoissonArrivals(1.0).times(stream(self._seed, number, "arrivals"), num_requests=requests)
        return arrived, self._one.step_s * self._outputs.sample(stream(self._seed, number, "output_tokens"), requests)

    def _ttft_ms(self, rate_rps: float, requests: int, number: int) -> Floats:
        arrived, service_s = self._drawn(requests, number)
        arrival_s = arrived / rate_rps
        # the n-th wait is the highest of all later sums of services less gaps: S(n) - min S
        sums = np.concatenate([[0.0], np.cumsum(service_s[:-1] - np.diff(arrival_s))])
        wait_s = sums - np.minimum.accumulate(sums)
        measured = arrival_s >= WARM_UP * requests / rate_rps
        return np.asarray(1000 * (wait_s[measured] + self._one.step_s))

    def _judged(self, rate_rps: float, size: Size, runs: list[Floats]) -> Point:
        value = float(np.percentile(np.concatenate(runs), PERCENTILE))
        found = estimate([float(np.percentile(one, PERCENTILE)) for one in runs], value=value)
        one = Judged(self._condition, value, found.low, found.high, Verdict.NOT_KNOWN)
        warnings = (f"too few for a percentile: {COLUMN}",) if in_doubt(COLUMN, value, _Values(runs)) else ()
        return Point(self.policy, rate_rps, size, Judgement(self.policy, False, (one,)), {}, warnings)


def search(problem: Problem, one: OneSeat, *, seed: int, precision: float, requests: int) -> tuple[Found, Trials]:
    """Return what the search finds, and its runs.

    Parameters
    ----------
    problem : Problem
    one : OneSeat
        Of the problem.
    seed : int
    precision : float
    requests : int
        Of the first runs.
    """
    trials = _Waits(problem, one, seed)
    stable = StableRate(1 / one.mean_s, 0.97 / one.mean_s, 1.03 / one.mean_s, "stable rate", "exact")
    return Search(trials, Wanted(precision, requests), stable).run(), trials
