"""How often intervals of single runs contain the true value, where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.results import onerun
from simqueue.statistics import batchmeans, regenerative
from simqueue.statistics.batchmeans import RunInterval
from simqueue.theory.renewal import gamma_m1_mean_sojourn, gamma_m1_sojourn_quantile

_RUNS = 400
_LONG_RUNS = 100
_SHAPES = {"Poisson": 1.0, "bursty (gamma, 1/4)": 0.25}
_LOADS = (0.5, 0.8, 0.9)
_LENGTHS = (1000, 5000, 20_000)
_LONG = 200_000
_PERCENTILES = {"median": 50.0, "p95": 95.0, "p99": 99.0}
_COLUMNS = ("mean, batch means", "mean, regenerative", "throughput", "median", "p95", "p99")

_HEAD = """\
<!-- made by: python -m studies.certainty one-run -->
# Intervals of one run

How often the 95 % interval of a single run contains the true value, on GI/M/1 with a mean service time of 1: sojourn
times and departures, by Lindley's recursion, from an empty start. The statistics and the rules about when there is no
interval are those of `simqueue run --intervals`. The true values are exact (`simqueue.theory.renewal`).

A cell shows the share of the runs with an interval whose interval contains the truth, and in brackets the share of runs
that have an interval, if not all have. `-`: no run has one. {runs} runs per row; {long_runs} runs of {long:,} requests.

| arrivals | load | requests | {columns} | half-width of the mean |
|---|---|---|{rules}|---|
"""
_TAIL = """
Where an interval is given (in a twentieth of the runs at least), it covers in {least:.1f} % of them or more. The
half-width is the median over runs, relative to the mean: one run of 5,000 requests at a load of 0.9 says little, and
its interval says so.

The widest of four numbers of batches is taken because no single number suits all rows: few long batches suit high
loads, many short ones suit low loads. Rules that drop runs by an estimate of their own precision would keep those that
overstate it. So the rules look at what is known beforehand: numbers of requests and cycles, and requests beyond a
percentile. The lag check drops only runs whose ten batches are plainly correlated. Loads above 0.9 were not measured.
"""


@dataclass(frozen=True, slots=True)
class _Case:
    arrivals: str
    load: float
    requests: int
    runs: int


def write(folder: Path) -> list[Path]:
    """Measure the coverage of the intervals of single runs, and write the page."""
    cases = [_Case(name, load, n, _RUNS) for name in _SHAPES for load in _LOADS for n in _LENGTHS]
    cases += [_Case(name, load, _LONG, _LONG_RUNS) for name in _SHAPES for load in _LOADS]
    rows, least = [], 1.0
    for case in cases:
        found = coverage(case.arrivals, case.load, case.requests, case.runs)
        cells = [_cell(found, name) for name in _COLUMNS]
        least = min([least, *(found[name][0] / found[name][1] for name in _COLUMNS if _counts(found, name))])
        width = found["half-widths"]
        shown = f"{np.median(width):.0%}" if len(width) else "-"
        rows.append(f"| {case.arrivals} | {case.load} | {case.requests:,} | {' | '.join(cells)} | {shown} |\n")
    head = _HEAD.format(
        runs=_RUNS,
        long_runs=_LONG_RUNS,
        long=_LONG,
        columns=" | ".join(_COLUMNS),
        rules="|".join(["---"] * len(_COLUMNS)),
    )
    page = folder / "one-run.md"
    page.write_text(head + "".join(rows) + _TAIL.format(least=100 * least), encoding="utf-8", newline="\n")
    return [page]


def coverage(arrivals: str, load: float, requests: int, runs: int, seed: int = 1) -> dict[str, Any]:
    """Return, by statistic, the numbers of runs whose interval contains the truth, and that have an interval."""
    shape = _SHAPES[arrivals]
    truths = {name: gamma_m1_mean_sojourn(load, 1, shape) for name in _COLUMNS[:2]} | {"throughput": load}
    truths |= {name: gamma_m1_sojourn_quantile(load, 1, shape, q / 100) for name, q in _PERCENTILES.items()}
    covered: Counter[str] = Counter()
    given: Counter[str] = Counter()
    widths = []
    for arrival_s, leave_s in _runs(shape, load, requests, runs, seed):
        for name, found in _intervals(arrival_s, leave_s):
            if found.low is None or found.high is None:
                continue
            given[name] += 1
            covered[name] += found.low <= truths[name] <= found.high
            if name == _COLUMNS[0]:
                widths.append((found.high - found.low) / 2 / found.value)
    return {name: (covered[name], given[name], runs) for name in _COLUMNS} | {"half-widths": widths}


def _intervals(arrival_s: NDArray[Any], leave_s: NDArray[Any]) -> Iterator[tuple[str, RunInterval]]:
    starts = regenerative.cycle_starts(arrival_s, leave_s)
    n, first_s, last_s = len(arrival_s), float(arrival_s[0]), float(arrival_s[-1])
    if onerun.too_few(n, len(starts) - 1) or onerun.rate_changes(arrival_s, first_s, last_s):
        return
    sojourn_s = leave_s - arrival_s
    yield _COLUMNS[0], batchmeans.mean_by_batches(sojourn_s)
    yield _COLUMNS[1], regenerative.mean_by_cycles(sojourn_s, starts)
    yield "throughput", batchmeans.mean_by_batches(onerun.departure_rates(leave_s, first_s, last_s))
    for name, q in _PERCENTILES.items():
        if round(n * (100 - q) / 100) >= onerun.LEAST_BEYOND:
            yield name, batchmeans.quantile_by_sections(sojourn_s, q)


def _runs(
    shape: float, load: float, n: int, runs: int, seed: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return arrivals and departures of each run: all runs advance together, request by request."""
    rng = np.random.default_rng([seed, n, int(1000 * load), int(100 * shape)])
    arrival_s = np.cumsum(rng.gamma(shape, 1 / shape / load, (n, runs)), axis=0)
    service_s = rng.exponential(1, (n, runs))
    leave_s = np.empty((n, runs))
    last_s = np.zeros(runs)
    for i in range(n):
        last_s = np.maximum(last_s, arrival_s[i]) + service_s[i]
        leave_s[i] = last_s
    for run in range(runs):
        yield arrival_s[:, run].copy(), leave_s[:, run].copy()


def _counts(found: dict[str, Any], name: str) -> bool:
    """Whether so many runs have an interval that a share says something."""
    return bool(found[name][1] >= 0.05 * found[name][2])


def _cell(found: dict[str, Any], name: str) -> str:
    covered, given, runs = found[name]
    if not given:
        return "-"
    few = f" ({given / runs:.0%})" if given < runs else ""
    return f"{covered / given:.1%}{few}"
