"""Estimates from independent replications, with intervals that allow for skewness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simqueue.statistics.intervals import CONFIDENCE, student_t


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its confidence interval, which need not be symmetric.

    Attributes
    ----------
    value : float
    low, high : float or None
        Ends of the interval; None with fewer than two replications.
    error : float or None
        Standard error of the value.
    n : int
        Number of replications.
    """

    value: float
    low: float | None
    high: float | None
    error: float | None
    n: int

    @property
    def relative(self) -> float | None:
        """Half the length of the interval over the absolute value; None if one is undefined or the value is 0."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


def estimate(values: Sequence[float], confidence: float = CONFIDENCE, value: float | None = None) -> Estimate:
    """Return an estimate from one value per replication.

    The interval is Student's, on Hall's scale: a cubic transformation of the t-statistic takes out its skewness (Hall
    1992, On the removal of skewness by transformation). Without skewness it is Student's interval. For waits of few
    runs, whose distribution has a long tail, Student's interval is too short on the upper side: for ten values of a
    gamma distribution of shape 0.3, 95 % intervals cover 82 %, and these 94 %; for normal values 95 % and 95 %. So
    there is no threshold of skewness below which Student's interval is taken: ten values hardly ever show enough of it.

    Parameters
    ----------
    values : sequence of float
        One per replication, at least one.
    confidence : float
        Nominal coverage.
    value : float, optional
        The estimate, if it is not the mean of the values: with sections, the statistic of all observations together.
        Deviations are then from it.
    """
    n = len(values)
    mean = math.fsum(values) / n
    centre = mean if value is None else value
    if n < 2:
        return Estimate(centre, None, None, None, n)
    error = math.sqrt(math.fsum((one - centre) ** 2 for one in values) / (n - 1) / n)
    t, skewed = student_t(n, confidence), skewness(values)
    low, high = (centre - error * hall_inverse(end, skewed, n) for end in (t, -t))
    return Estimate(centre, low, high, error, n)


def skewness(values: Sequence[float]) -> float:
    """Return the adjusted sample skewness; 0 if it is undefined."""
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((one - mean) ** 2 for one in values) / n
    if n < 3 or variance <= (1e-12 * mean) ** 2:
        return 0.0
    third = math.fsum((one - mean) ** 3 for one in values) / n
    return third / math.sqrt(variance) ** 3 * math.sqrt(n * (n - 1)) / (n - 2)


def hall_inverse(t: float, skewed: float, n: int) -> float:
    """Return the t-statistic at which Hall's transformation is `t`, for `n` values of this skewness."""
    if abs(skewed) < 1e-6:
        return t
    a = skewed / math.sqrt(n)
    return 3 / a * (math.cbrt(1 + a * t - a * a / 6) - 1)
