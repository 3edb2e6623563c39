"""What cannot be known from so few: steady statistics over replications whose intervals cannot be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from simqueue.results.latencies import column, parsed
from simqueue.results.metrics import Floats
from simqueue.results.steadiness import STEADY
from simqueue.statistics.dependence import LEAST_BEYOND, LEAST_STRETCHES, needed_for_mean, stretches

if TYPE_CHECKING:
    from simqueue.results.samples import Samples
    from simqueue.results.summary import Row

_METRICS = ("ttft", "tpot", "e2el")


def doubts(row: Row, samples: Samples) -> list[str]:
    """Return warnings about the values of a policy whose window is steady; each names them.

    Parameters
    ----------
    row : dict
        The summary of all replications.
    samples : Samples
        The latencies behind it.
    """
    runs = row["replications"]
    if row["window"] != STEADY or row["mean_ttft_ms"] is None or not isinstance(runs, int) or runs < 2:
        return []
    known = stretches(_filled(samples.of("ttft")))
    if known < LEAST_STRETCHES:
        return [
            f"too few for a steady state: a run is worth about {_rounded(known)} independent values of TTFT, at least "
            f"{LEAST_STRETCHES} are needed; latencies, throughput and goodput can be biased, and their intervals too "
            "narrow; make the runs longer"
        ]
    series = {metric: _filled(samples.of(metric)) for metric in _METRICS}
    means = [f"mean_{metric}_ms" for metric, found in series.items() if found and _too_skewed(found)]
    beyond = [name for name, level in _levels(row) if _few_beyond(series[level[1]], row[name], level[0])]
    lines = []
    if means:
        lines.append(
            f"too few for a mean: {', '.join(means)}: a few large values decide, so the interval can be too narrow"
        )
    if beyond:
        lines.append(
            f"too few for a percentile: {', '.join(beyond)}: fewer than {LEAST_BEYOND} independent values are beyond "
            "it, so the interval can be too narrow"
        )
    return [f"{line}; make the runs longer, or their number larger" for line in lines]


def _levels(row: Row) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield the columns that are percentiles of a latency of requests, with percentile and metric."""
    for name in row:
        found = parsed(name)
        if found is not None and found[0] is not None and found[1] in _METRICS and name == column(found[1], found[0]):
            yield name, (found[0], found[1])


def _filled(series: Sequence[Floats]) -> list[Floats]:
    return [one for one in series if len(one)]


def _too_skewed(series: Sequence[Floats]) -> bool:
    return len(series) * stretches(series) < needed_for_mean(np.concatenate(series))


def _few_beyond(series: Sequence[Floats], value: object, q: float) -> bool:
    """Return whether fewer independent observations are beyond a percentile than its interval needs."""
    if not series or not isinstance(value, float):
        return False
    above = [np.asarray(one > value, dtype=np.float64) for one in series]
    return len(series) * stretches(above) * min(q, 100 - q) / 100 < LEAST_BEYOND


def _rounded(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{number:.0f}"
