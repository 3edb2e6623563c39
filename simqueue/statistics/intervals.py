"""Confidence intervals over independent replications, and of percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simqueue.errors import InputError

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of independent values, and how sure it is.

    Attributes
    ----------
    mean : float
    half_width : float or None
        None of fewer than two values, from which nothing about their spread can be told.
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
        """Half-width over the mean; None where either is undefined or the mean is 0."""
        return None if self.half_width is None or self.mean == 0 else self.half_width / abs(self.mean)


def check_confidence(confidence: float) -> None:
    """Raise `InputError` unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence:g}: must be > 0 and < 1")


def student_t(n: int, confidence: float = CONFIDENCE) -> float:
    """Return the factor of a two-sided t-interval over `n` >= 2 independent values."""
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is slow to load and not always wanted

    check_confidence(confidence)
    if n < 2:
        raise InputError(f"an interval needs at least 2 replications, there are {n}")
    return float(stdtrit(n - 1, (1 + confidence) / 2))


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the Student-t interval of the mean of independent values.

    Parameters
    ----------
    values : sequence of float
        One value a replication; at least one.
    confidence : float
        Nominal coverage.

    Raises
    ------
    InputError
        Of no values.
    """
    check_confidence(confidence)
    n = len(values)
    if n == 0:
        raise InputError("an interval needs values; there are none")
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, None, 1)
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(mean, student_t(n, confidence) * error, n)


@dataclass(frozen=True, slots=True)
class PercentileInterval:
    """A percentile of independent observations between two order statistics.

    Attributes
    ----------
    value : float
        By linear interpolation, as everywhere in this package.
    low, high : float or None
        None where the sample is too small to bound the percentile.
    n : int
    note : str
        Empty, or why there is no interval.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    note: str = ""


def percentile_interval(values: Sequence[float], q: float, confidence: float = CONFIDENCE) -> PercentileInterval:
    """Return a percentile of independent observations with its distribution-free interval.

    The ends are order statistics whose ranks are quantiles of a binomial law, so no law of the values is assumed. For
    requests of one run, which depend on each other, take the percentile of each replication and `mean_interval`.

    Parameters
    ----------
    values : sequence of float
        Independent; at least one.
    q : float
        0 < q < 100.
    confidence : float
    """
    from scipy.stats import binom  # noqa: PLC0415 - scipy is slow to load and not always wanted

    check_confidence(confidence)
    _check_percentile(q)
    ranked = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ranked)
    if n == 0:
        raise InputError("a percentile needs values; there are none")
    value, p = float(np.percentile(ranked, q)), q / 100
    needed = least_sample(q, confidence)
    if n < needed:
        return PercentileInterval(value, None, None, n, f"n too small: {n}, an interval of p{q:g} needs {needed}")
    tail = (1 - confidence) / 2
    low, high = int(binom.ppf(tail, n, p)), int(binom.ppf(1 - tail, n, p)) + 1
    return PercentileInterval(value, float(ranked[max(low, 1) - 1]), float(ranked[min(high, n) - 1]), n)


def least_sample(q: float, confidence: float = CONFIDENCE) -> int:
    """Return how many observations can bound the `q`-th percentile on both sides: 368 for p99 at 95 %."""
    _check_percentile(q)
    check_confidence(confidence)
    rarer = max(q, 100 - q) / 100
    return math.ceil(math.log((1 - confidence) / 2) / math.log(rarer))


def carries_percentile(n: int, q: float) -> bool:
    """Return whether `n` observations can say anything about their `q`-th percentile: one is expected beyond it."""
    _check_percentile(q)
    return n * min(q, 100 - q) / 100 >= 1 - 1e-9


def _check_percentile(q: float) -> None:
    if not 0 < q < 100:
        raise InputError(f"percentile {q:g}: must be > 0 and < 100")
