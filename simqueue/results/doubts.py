"""What cannot be known from so few: steady statistics over replications whose intervals cannot be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simqueue.results.latencies import parsed
from simqueue.results.metrics import Floats
from simqueue.results.steadiness import STEADY
from simqueue.statistics.dependence import LEAST_BEYOND, LEAST_STRETCHES, all_equal, needed_for_mean, stretches

if TYPE_CHECKING:
    from simqueue.results.samples import Samples
    from simqueue.results.summary import Row

_METRICS = ("ttft", "tpot", "e2el")


def doubts(row: Row, samples: Samples) -> list[str]:
    """Return warnings about the values of a policy whose window is steady; each names them.

    Parameters
    ----------
    row : dict
        The summary of all replications, or of the only one.
    samples : Samples
        The latencies behind it.
    """
    runs = row["replications"]
    if row["window"] != STEADY or row["mean_ttft_ms"] is None:
        return []
    several = isinstance(runs, int) and runs > 1
    known = _known(_filled(samples.of("ttft")))
    if known < LEAST_STRETCHES:
        return [
            f"too few for a steady state: a run is worth about {_rounded(known)} independent values of TTFT, at least "
            f"{LEAST_STRETCHES} are needed; latencies, throughput and goodput can be biased"
            f"{', and their intervals too narrow' if several else ''}; make the runs longer"
        ]
    few = [name for name, value in row.items() if isinstance(value, float) and _too_few(name, value, samples)]
    means = [name for name in few if name.startswith("mean_")]
    beyond = [name for name in few if name not in means]
    effect = "the interval can be too narrow" if several else "one run does not show how far off it is"
    lines = []
    if means:
        lines.append(f"too few for a mean: {', '.join(means)}: a few large values decide, so {effect}")
    if beyond:
        lines.append(
            f"too few for a percentile: {', '.join(beyond)}: fewer than {LEAST_BEYOND} independent values are beyond "
            f"it, so {effect}"
        )
    return [f"{line}; make the runs longer, or their number larger" for line in lines]


def in_doubt(name: str, value: float, samples: Samples, margin: float = 1.0) -> bool:
    """Return whether `doubts` warns about this value of a column, if the window is steady.

    Parameters
    ----------
    name : str
    value : float
    samples : Samples
        The latencies behind it.
    margin : float
        How many times as many independent values a mean must have.
    """
    known = _filled(samples.of("ttft"))
    return (bool(known) and _known(known) < LEAST_STRETCHES) or _too_few(name, value, samples, margin)


def _too_few(name: str, value: float, samples: Samples, margin: float = 1.0) -> bool:
    """Return whether there are too few independent values for the interval of this mean or percentile of a latency."""
    q, metric = parsed(name) or (None, "")
    series = _filled(samples.of(metric)) if metric in _METRICS else []
    if not series or all_equal(np.concatenate(series)):
        return False
    return _too_skewed(series, margin) if q is None else _few_beyond(series, value, q)


def _known(series: Sequence[Floats]) -> float:
    """Return how many independent values one series is worth on average: no more than it has."""
    return min(stretches(series), sum(map(len, series)) / len(series))


def _filled(series: Sequence[Floats]) -> list[Floats]:
    return [one for one in series if len(one)]


def _too_skewed(series: Sequence[Floats], margin: float) -> bool:
    return len(series) * stretches(series) < margin * needed_for_mean(np.concatenate(series))


def _few_beyond(series: Sequence[Floats], value: float, q: float) -> bool:
    """Return whether fewer independent observations are beyond a percentile than its interval needs."""
    above = [np.asarray(one > value, dtype=np.float64) for one in series]
    return len(series) * stretches(above) * min(q, 100 - q) / 100 < LEAST_BEYOND


def _rounded(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{number:.0f}"
