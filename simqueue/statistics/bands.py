"""A mean as a function of time, over replications: with pointwise intervals, and with a simultaneous band.

A pointwise interval contains the true mean of its own time with the given confidence. The simultaneous band contains
the means of all times at once, so that the course of the true mean runs inside it. It is a sup-t band (Montiel Olea and
Plagborg-Møller 2019, Simultaneous confidence bands): as many standard errors to each side as the largest t-statistic of
all times has, for values that depend on each other as those of the replications do. Both allow for skewness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simqueue.statistics.estimate import estimate, reach
from simqueue.statistics.intervals import CONFIDENCE, Estimate, student_t
from simqueue.statistics.moments import skewness

Floats = NDArray[np.float64]
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class BandPoint:
    """A mean at a time with both intervals.

    Attributes
    ----------
    value : float or None
        None without any observation.
    low, high : float or None
        The pointwise interval; None if the replications do not differ, which says nothing about the error.
    simultaneous_low, simultaneous_high : float or None
        The band.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None


def band(sums: Floats, counts: Floats, confidence: float = CONFIDENCE) -> list[BandPoint]:
    """Return the ratio of two sums over replications at each time, for quantities that are never negative.

    Parameters
    ----------
    sums, counts : arrays of shape (replications, times)
        What is added up in each replication at each time, and over how many observations; at least two replications.
        With a count of 1 everywhere the ratio is the mean of the replications.
    confidence : float
        Nominal coverage of each interval, and of the band as a whole.
    """
    known = counts.sum(axis=0) > 0
    ratios = np.divide(sums.sum(axis=0), counts.sum(axis=0), out=np.zeros(len(known)), where=known)
    # A ratio is smooth in both means, so its error is that of what each replication has beyond it.
    values = ratios + (sums - ratios * counts) / np.where(known, counts.mean(axis=0), 1.0)
    found = [
        estimate(column.tolist(), confidence, float(ratio)) for column, ratio in zip(values.T, ratios, strict=True)
    ]
    errors = np.array([one.error or 0.0 for one in found])
    varies = errors > 0
    t = _largest_t((values - ratios)[:, varies] / errors[varies], confidence)
    return [
        _point(one, skewness(column), t) if known[i] else BandPoint(None)
        for i, (one, column) in enumerate(zip(found, values.T, strict=True))
    ]


def _point(found: Estimate, skewed: float, t: float) -> BandPoint:
    if not found.error or found.low is None or found.high is None:
        return BandPoint(found.value)
    below, above = (found.error * far for far in reach(t, skewed, found.n))
    return BandPoint(found.value, max(0.0, found.low), found.high, max(0.0, found.value - below), found.value + above)


def _largest_t(deviations: Floats, confidence: float) -> float:
    """Return the quantile of the largest absolute t-statistic, which is neither below Student's nor above Bonferroni's.

    Parameters
    ----------
    deviations : array of shape (replications, times)
        Over the standard error of their mean.
    confidence : float
    """
    n, times = deviations.shape
    if not times:
        return student_t(n, confidence)
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(_DRAWS, n)) @ deviations / np.sqrt(n * (n - 1))
    spread = np.sqrt(rng.chisquare(n - 1, _DRAWS) / (n - 1))
    largest = float(np.quantile(np.abs(normal).max(axis=1) / spread, confidence))
    return min(max(largest, student_t(n, confidence)), student_t(n, 1 - (1 - confidence) / times))
