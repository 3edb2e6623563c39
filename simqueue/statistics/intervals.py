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
    """A mean of independent values with its confidence interval.

    Attributes
    ----------
    mean : float
    half_width : float or None
        None with fewer than two values, which have no spread.
    n : int
        Number of independent values.
    """

    mean: float
    half_width: float | None
    n: int

    @property
    def low(self) -> float | None:
        """Lower end."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end."""
        return None if self.half_width is None else self.mean + self.half_width

    @property
    def relative(self) -> float | None:
        """Half-width over the absolute mean; None if the half-width is undefined or the mean is 0."""
        return None if self.half_width is None or self.mean == 0 else self.half_width / abs(self.mean)


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


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
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
        return Interval(mean, None, 1)
    return Interval(mean, student_t(n, confidence) * standard_error(values), n)


def carries_percentile(n: int, q: float) -> bool:
    """Return whether `n` observations are enough for the `q`-th percentile: at least one is expected beyond it."""
    if not 0 < q < 100:
        raise InputError(f"percentile {q:g}: must be > 0 and < 100")
    return n * min(q, 100 - q) / 100 >= 1 - 1e-9
