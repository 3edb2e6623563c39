"""Confidence intervals over independent replications, and the sample sizes that percentiles need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import scipy

from simqueue.errors import InputError
from simqueue.statistics.moments import standard_error

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its confidence interval, which need not be symmetric.

    Attributes
    ----------
    value : float
    low, high : float or None
        Ends of the interval; None if there is none.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def relative(self) -> float | None:
        """The longer side of the interval over the absolute value; None if one is undefined or the value is 0."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return max(self.value - self.low, self.high - self.value) / abs(self.value)


@dataclass(frozen=True, slots=True)
class Estimate(Interval):
    """A value from independent replications, with its interval.

    Attributes
    ----------
    error : float or None
        Standard error of the value; None, as are the ends, with fewer than two replications.
    n : int
        Number of replications.
    """

    error: float | None
    n: int


def check_confidence(confidence: float) -> None:
    """Raise `InputError` unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence:g}: must be > 0 and < 1")


def student_t(n: int, confidence: float = CONFIDENCE) -> float:
    """Return the quantile for a two-sided t-interval over `n` >= 2 independent values."""
    check_confidence(confidence)
    if n < 2:
        raise InputError(f"an interval needs at least 2 replications; there are {n}")
    return float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2))


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the Student-t interval of the mean of independent values.

    Parameters
    ----------
    values : sequence of float
        One value per replication; at least one.
    confidence : float
        Nominal coverage.

    Raises
    ------
    InputError
        If there are no values.
    """
    check_confidence(confidence)
    n = len(values)
    if n == 0:
        raise InputError("an interval needs at least one value")
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean, None, None, None, 1)
    error = standard_error(values)
    width = student_t(n, confidence) * error
    return Estimate(mean, mean - width, mean + width, error, n)


def carries_percentile(n: int, q: float) -> bool:
    """Return whether `n` observations are enough for the `q`-th percentile: at least one is expected beyond it."""
    if not 0 < q < 100:
        raise InputError(f"percentile {q:g}: must be > 0 and < 100")
    return n * min(q, 100 - q) / 100 >= 1 - 1e-9
