"""Intervals of single runs: of means, of throughput and of percentiles, or a sentence why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.request import Status
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.latencies import ALWAYS, column
from simqueue.results.metrics import Latencies, has_status
from simqueue.results.signs import stay
from simqueue.results.steadiness import unsteady
from simqueue.results.window import last_entry_s
from simqueue.statistics import batchmeans, regenerative
from simqueue.statistics.batchmeans import RunInterval, without

if TYPE_CHECKING:
    from simqueue.results.policyrun import PolicyRun
    from simqueue.results.result import Result
    from simqueue.results.summary import Row

BATCH_MEANS: Final = "batch-means"
REGENERATIVE: Final = "regenerative"
METHODS: Final = (BATCH_MEANS, REGENERATIVE)
LEAST_REQUESTS: Final = 5000
"""With fewer requests, intervals covered the mean of bursty traffic at a load of 0.9 in fewer than 9 of 10 runs..."""
LEAST_WITH_CYCLES: Final = 1000
"""... unless the system emptied `regenerative.LEAST_CYCLES` times."""
LEAST_BEYOND: Final = 2000
"""Requests beyond a percentile from which on sections covered it."""
_INTERVALS: Final = 400
"""Equal intervals of time in which departures are counted."""
_RATES: Final = 20
_CHANGES: Final = 2.6
"""Standard deviations of von Neumann's ratio at which the rate of arrivals counts as changing (0.5 %)."""


@dataclass(frozen=True, slots=True)
class OneRunInterval:
    """What one run of a policy says about a metric.

    Attributes
    ----------
    policy, metric, method : str
        `metric` is a column of the summary.
    estimate, low, high : float or None
        In the unit of the metric. Without an interval, `low` and `high` are None.
    based_on, reason : str
        The number of batches or cycles; why there is no interval.
    """

    policy: str
    metric: str
    method: str
    estimate: float | None
    low: float | None
    high: float | None
    based_on: str
    reason: str


def check_method(method: str) -> None:
    """Raise `InputError` unless there is a method of this name."""
    if method not in METHODS:
        raise InputError(f"intervals: {unknown('method', method, METHODS)}")


def one_run_intervals(result: Result, method: str = BATCH_MEANS, policy: str | None = None) -> list[OneRunInterval]:
    """Return the intervals of each policy's run.

    Parameters
    ----------
    result : Result
        Of one replication.
    method : str
        ``batch-means``, or ``regenerative`` (of means only).
    policy : str, optional
        Only this one.

    Raises
    ------
    InputError
        If there are replications, whose intervals are better, or a name is unknown.
    """
    check_method(method)
    if policy is not None and policy not in result.policies:
        raise InputError(unknown("policy", policy, result.policies))
    if result.replicated:
        raise InputError(f"intervals: {method} is for single runs; these replications have intervals in the summary")
    rows = {row["policy"]: row for row in result.summary_rows if row["request_class"] == ALL_CLASSES}
    return [
        OneRunInterval(run.policy, metric, method, *_fields(found, shown=rows[run.policy][metric] is not None))
        for run in result.runs
        if policy in (None, run.policy)
        for metric, found in _of_run(run, method, rows[run.policy])
    ]


def _fields(found: RunInterval, *, shown: bool) -> tuple[float | None, float | None, float | None, str, str]:
    estimate = None if math.isnan(found.value) or not shown else found.value
    low = None if found.low is None else max(0.0, found.low)  # no metric is negative
    return estimate, low, found.high, found.based_on, found.reason


def _of_run(run: PolicyRun, method: str, row: Row) -> Iterator[tuple[str, RunInterval]]:
    measured = _Measured(run)
    unclear = row["overloaded"] is None and not row["bounded"] and run.signs.arrives_openly
    why_not = "it cannot be told whether the run is overloaded" if unclear else ""
    why_not = why_not or measured.why_not(overloaded=unsteady(row))
    batches = method == BATCH_MEANS
    for name, values_ms in measured.latencies_ms().items():
        found = values_ms[~np.isnan(values_ms)]
        estimate = float(np.mean(found)) if len(found) else math.nan
        if why_not or len(found) < batchmeans.NUMBERS[-1]:
            interval = without(estimate, why_not or "too few requests have a value")
        elif batches:
            interval = batchmeans.mean_by_batches(found)
        else:
            interval = regenerative.mean_by_cycles(values_ms, measured.starts)
        yield f"mean_{name}_ms", interval
        if batches:
            yield from _percentiles(name, found, why_not)
    if batches:
        yield "request_throughput", measured.throughput(why_not)


def _percentiles(name: str, values_ms: NDArray[Any], why_not: str) -> Iterator[tuple[str, RunInterval]]:
    for q in ALWAYS:
        named = column(name, q)
        beyond = round(len(values_ms) * (100 - q) / 100)
        reason = why_not
        if not reason and beyond < LEAST_BEYOND:
            reason = f"only {beyond:,} requests are expected beyond it, and {LEAST_BEYOND:,} are needed"
        if reason:
            yield named, without(float(np.percentile(values_ms, q)) if len(values_ms) else math.nan, reason)
        else:
            yield named, batchmeans.quantile_by_sections(values_ms, q)


class _Measured:
    """What a run measured: the requests that arrived in its window, in order of arrival, and its departures."""

    def __init__(self, run: PolicyRun) -> None:
        requests = run.recording.requests
        everything = np.ones(len(requests["arrival_s"]), dtype=np.bool_)
        self.requests = requests
        self.inside = everything if run.window is None else run.window.arrived(requests)
        self.done = has_status(requests, Status.FINISHED)
        arrival_s, leave_s = stay(run.recording)
        self.arrival_s = arrival_s[self.inside]
        first_s = float(arrival_s.min()) if len(arrival_s) else 0.0
        self.start_s = first_s if run.window is None else run.window.start_s
        self.end_s = last_entry_s(requests) if run.window is None else run.window.end_s
        empty = regenerative.cycle_starts(arrival_s, leave_s) if len(arrival_s) else np.zeros(0, dtype=np.intp)
        marked = np.zeros(len(arrival_s), dtype=np.bool_)
        marked[empty] = True
        self.starts = np.flatnonzero(marked[self.inside])

    def latencies_ms(self) -> dict[str, NDArray[Any]]:
        """Return TTFT, TPOT and E2EL of the measured requests, NaN for those that did not finish."""
        found = Latencies(self.requests)
        named = {"ttft": found.ttft_s, "tpot": found.tpot_s, "e2el": found.e2el_s}
        return {name: 1000 * np.where(self.done, seconds, np.nan)[self.inside] for name, seconds in named.items()}

    def throughput(self, why_not: str) -> RunInterval:
        """Return the departures per second while requests arrived."""
        finish_s = self.requests["finish_s"][self.done]
        if self.end_s <= self.start_s:
            return without(math.nan, why_not or "all requests arrive at once")
        rates = departure_rates(finish_s, self.start_s, self.end_s)
        return without(float(rates.mean()), why_not) if why_not else batchmeans.mean_by_batches(rates)

    def why_not(self, *, overloaded: bool) -> str:
        """Return why no statistic of the run can have an interval; empty if it can."""
        n = len(self.arrival_s)
        cycles = len(self.starts) - 1
        if overloaded:
            return "the run is overloaded and has no steady state"
        if few := too_few(n, cycles):
            return few
        if rate_changes(self.arrival_s, self.start_s, self.end_s):
            return "the rate of arrivals changes during the run, so that its parts do not repeat each other"
        return ""


def too_few(n: int, cycles: int) -> str:
    """Return why `n` requests in `cycles` cycles are too few for an interval; empty if they are enough."""
    if n >= LEAST_REQUESTS or (n >= LEAST_WITH_CYCLES and cycles >= regenerative.LEAST_CYCLES):
        return ""
    return (
        f"{n:,} requests and {max(cycles, 0):,} cycles are too few: needed are {LEAST_REQUESTS:,} requests, or "
        f"{LEAST_WITH_CYCLES:,} during which the system emptied {regenerative.LEAST_CYCLES} times"
    )


def departure_rates(finish_s: NDArray[Any], start_s: float, end_s: float) -> NDArray[np.float64]:
    """Return the departures per second in equal intervals of time."""
    edges = np.linspace(start_s, end_s, _INTERVALS + 1)
    return np.asarray(np.histogram(finish_s, edges)[0] / (edges[1] - edges[0]))


def rate_changes(arrival_s: NDArray[Any], start_s: float, end_s: float) -> bool:
    """Return whether the rate of arrivals drifts.

    Counts of equal intervals drift if neighbours are alike (von Neumann's ratio), and if they spread more than twice as
    widely as those of a Poisson process.
    """
    if end_s <= start_s:
        return False
    counts = np.histogram(arrival_s, np.linspace(start_s, end_s, _RATES + 1))[0]
    k, off = len(counts), counts - counts.mean()
    square = float(off @ off)
    if square <= 2 * (k - 1) * counts.mean():
        return False
    alike = 1 - float(np.sum(np.diff(counts) ** 2)) / (2 * square)
    return alike > _CHANGES * math.sqrt((k - 2) / (k * k - 1))
