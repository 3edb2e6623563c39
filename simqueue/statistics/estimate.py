"""Estimates from independent replications, with intervals that allow for skewness."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simqueue.statistics.intervals import CONFIDENCE, Estimate, student_t
from simqueue.statistics.moments import skewness, standard_error


def estimate(values: Sequence[float], confidence: float = CONFIDENCE, value: float | None = None) -> Estimate:
    """Return an estimate from one value per replication.

    On each side the interval reaches as far as the wider of two: Student's, and Student's on Hall's scale, see `reach`.
    Of intervals of ten values from a gamma distribution of shape 0.3, a nominal 95 % are 81 % by Student's, 94 % by
    Hall's and 94 % by these; from a lognormal distribution of cv 1.3, 84, 91 and 92 %; from a normal distribution, 95,
    95 and 96 %, and with five values 95, 94 and 97 %.

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
    error = standard_error(values, centre)
    below, above = reach(student_t(n, confidence), skewness(values), n)
    return Estimate(centre, centre - error * below, centre + error * above, error, n)


ENOUGH_FOR_SKEWNESS = 10
"""So many values show their skewness well enough: of five normal ones, two in five intervals would be lopsided."""


def reach(t: float, skewed: float, n: int) -> tuple[float, float]:
    """Return how many standard errors an interval of `n` values reaches below and above the estimate.

    A cubic transformation of the t-statistic takes out its skewness (Hall 1992, On the removal of skewness by
    transformation): the interval moves towards the long tail. The skewness of few values is itself known badly, so no
    end is moved inwards of `t`, Student's quantile, and with fewer than `ENOUGH_FOR_SKEWNESS` values only a part of it
    counts: that of two values none, because they have none. What Student's interval contains, this one contains too.
    """
    known = skewed * min(1.0, (n - 2) / (ENOUGH_FOR_SKEWNESS - 2))
    below, above = hall_ends(t, known, n)
    return max(t, below), max(t, above)


def hall_ends(t: float, skewed: float, n: int) -> tuple[float, float]:
    """Return how many standard errors Hall's interval of `n` values reaches below and above the estimate."""
    return _hall_inverse(t, skewed, n), -_hall_inverse(-t, skewed, n)


def _hall_inverse(t: float, skewed: float, n: int) -> float:
    """Return the t-statistic at which Hall's transformation is `t`, for `n` values of this skewness."""
    if abs(skewed) < 1e-6:
        return t
    a = skewed / math.sqrt(n)
    return 3 / a * (math.cbrt(1 + a * t - a * a / 6) - 1)
