"""Batch means: an interval from one run, whose successive values depend on each other.

The values are cut into equal batches in order of time. The means of long batches are nearly independent. Here the
interval is the widest of those for 5, 10, 20 and 40 batches. Each has a factor for what is left of the correlation
between neighbours, (1 + r) / (1 - r) for their correlation r, and is corrected for skewness. Sources: Schmeiser 1982,
Batch size effects in the analysis of simulation output; Tafazzoli and Wilson 2011, Skart. The correction is Hall's
(`simqueue.statistics.estimate`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.statistics.estimate import hall_ends
from simqueue.statistics.intervals import CONFIDENCE, Interval, student_t
from simqueue.statistics.moments import skewness

NUMBERS = (5, 10, 20, 40)
"""Numbers of batches; few are long, and many show correlation and skewness."""
_CHECKED = 10
MOST_CORRELATED = 0.7
"""Lag-1 correlation of ten batch means from which on not even these are nearly independent."""
_MOST_FACTOR = 0.9
"""Largest correlation that is corrected for."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class RunInterval(Interval):
    """The interval of a statistic of one run, or the reason why there is none.

    Attributes
    ----------
    based_on : str
        How many batches or cycles the interval is based on.
    reason : str
        Why there is no interval; empty if there is one.
    """

    based_on: str = ""
    reason: str = ""


def without(estimate: float, reason: str) -> RunInterval:
    """Return that there is no interval."""
    return RunInterval(estimate, None, None, reason=reason)


def mean_by_batches(values: NDArray[Any], confidence: float = CONFIDENCE) -> RunInterval:
    """Return the interval of the mean.

    Parameters
    ----------
    values : array of shape (n,), in order of time
        At least 40.
    confidence : float
        Nominal coverage.
    """
    estimate = float(np.mean(values))
    r = _lag_1(_batch_means(values, _CHECKED))
    if r >= MOST_CORRELATED:
        return without(
            estimate, f"too few independent batches: neighbours of {_CHECKED} have a correlation of {r:.2f}; run longer"
        )
    return _widest(estimate, {k: _batch_means(values, k) for k in NUMBERS}, None, confidence)


def quantile_by_sections(values: NDArray[Any], q: float, confidence: float = CONFIDENCE) -> RunInterval:
    """Return the interval of the `q`-th percentile by sectioning: batches of which each has its own.

    Parameters
    ----------
    values : array of shape (n,), in order of time
        So many that 40 batches have values beyond the percentile.
    q : float
        0 to 100.
    confidence : float
    """
    estimate = float(np.percentile(values, q))
    sections = {k: np.percentile(_cut(values, k), q, axis=1) for k in NUMBERS}
    return _widest(estimate, sections, estimate, confidence)


def _widest(estimate: float, batches: dict[int, NDArray[Any]], center: float | None, confidence: float) -> RunInterval:
    found = [(_ends(means, center, confidence), k) for k, means in batches.items()]
    (below, above), k = max(found, key=lambda one: one[0][0] + one[0][1])
    return RunInterval(estimate, estimate - below, estimate + above, f"{k} batches")


def _ends(means: NDArray[Any], center: float | None, confidence: float) -> tuple[float, float]:
    """Return how far the interval reaches below and above the estimate; deviations are from `center` or the mean."""
    k = len(means)
    around = means - (means.mean() if center is None else center)
    if _constant(means):
        return 0.0, 0.0
    r = min(max(0.0, _lag_1(means) + 1 / k), _MOST_FACTOR)  # 1/k: its bias
    error = math.sqrt(float(around @ around) / (k - 1) / k * (1 + r) / (1 - r))
    below, above = hall_ends(student_t(k, confidence), skewness(means), k)
    return below * error, above * error


def _cut(values: NDArray[Any], k: int) -> NDArray[Any]:
    """Return `k` equal batches; the first values that do not fill one are left out."""
    size = len(values) // k
    return values[len(values) - k * size :].reshape(k, size)


def _batch_means(values: NDArray[Any], k: int) -> NDArray[Any]:
    return np.asarray(_cut(values, k).mean(axis=1))


def _lag_1(means: NDArray[Any]) -> float:
    if _constant(means):
        return 0.0
    off = means - means.mean()
    return float(off[1:] @ off[:-1]) / float(off @ off)


def _constant(means: NDArray[Any]) -> bool:
    """Return whether values differ by no more than rounding."""
    return float(np.ptp(means)) <= _ROUNDING * abs(float(means.mean()))
