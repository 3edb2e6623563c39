"""Variance, standard error and skewness of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

_ROUNDING = 1e-12
"""Spread relative to the mean below which values differ by rounding only."""


def variance(values: Sequence[float], about: float | None = None) -> float:
    """Return the sample variance of at least two values; with `about`, of their deviations from it."""
    centre = math.fsum(values) / len(values) if about is None else about
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def standard_error(values: Sequence[float], about: float | None = None) -> float:
    """Return the standard error of the mean of at least two values, or of `about`, an estimate beside their mean."""
    return math.sqrt(variance(values, about) / len(values))


def skewness(values: ArrayLike) -> float:
    """Return the adjusted sample skewness; 0 if it is undefined."""
    given = np.asarray(values, dtype=np.float64)
    n, mean = len(given), float(given.mean())
    off = given - mean
    square = float(np.mean(off * off))
    if n < 3 or square <= (_ROUNDING * mean) ** 2:
        return 0.0
    return float(np.mean(off * off * off)) / math.sqrt(square) ** 3 * math.sqrt(n * (n - 1)) / (n - 2)
