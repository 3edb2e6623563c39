"""How far a mean is from a multiple of another one: paired, unpaired, of single runs, or exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import scipy

from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import CONFIDENCE, Interval, student_t
from simqueue.statistics.moments import standard_error

Method = Literal["exact", "paired", "unpaired", "one run", "none"]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a quantity of a system.

    Attributes
    ----------
    values : tuple of float
        One per replication, at least one.
    half_width : float or None
        Half the 95 % interval that a single run gives by itself; None: there is none.
    exact : bool
        Whether nothing is random, so that every run is the same.
    """

    values: tuple[float, ...]
    half_width: float | None = None
    exact: bool = False

    @property
    def mean(self) -> float:
        """The mean over the replications."""
        return math.fsum(self.values) / len(self.values)

    def half(self, confidence: float) -> float | None:
        """Return half the interval of the mean; None if there is none."""
        if self.exact:
            return 0.0
        if len(self.values) > 1:
            return student_t(len(self.values), confidence) * standard_error(self.values)
        return None if self.half_width is None else self.half_width * _normal(confidence) / _normal(CONFIDENCE)


def method_of(one: Known, other: Known, *, same_seed: bool) -> Method:
    """Return how two systems can be compared.

    Replications of one seed see the same random numbers and are paired, as far as both have them. Those of different
    seeds are independent. Without replications, the intervals of the single runs are taken together.
    """
    if one.exact and other.exact:
        return "exact"
    if same_seed and min(len(one.values), len(other.values)) > 1:
        return "paired"
    if min(len(one.values), len(other.values)) > 1:
        return "unpaired"
    return "none" if None in (one.half(CONFIDENCE), other.half(CONFIDENCE)) else "one run"


def contrast(one: Known, other: Known, method: Method, confidence: float = CONFIDENCE, factor: float = 1.0) -> Interval:
    """Return the mean of one system minus `factor` times that of another one, with its interval.

    Paired: `estimate` of the differences of replications, which allows for skewness. Unpaired: Welch's interval. One
    run: half-widths are added as those of independent values; with the same random numbers that is too wide, not too
    narrow.

    Parameters
    ----------
    one, other : Known
    method : str
        See `method_of`.
    confidence : float
        Nominal coverage.
    factor : float
    """
    if method == "paired":
        n = min(len(one.values), len(other.values))
        return estimate([a - factor * b for a, b in zip(one.values[:n], other.values[:n], strict=True)], confidence)
    value = one.mean - factor * other.mean
    if method == "exact":
        return Interval(value, value, value)
    if method == "unpaired":
        half = _welch(one.values, other.values, factor, confidence)
        return Interval(value, value - half, value + half)
    halves = one.half(confidence), other.half(confidence)
    if method == "none" or halves[0] is None or halves[1] is None:
        return Interval(value, None, None)
    half = math.hypot(halves[0], factor * halves[1])
    return Interval(value, value - half, value + half)


def _welch(one: Sequence[float], other: Sequence[float], factor: float, confidence: float) -> float:
    """Return half of Welch's interval, with the degrees of freedom of Welch and Satterthwaite."""
    parts = [(standard_error(one) ** 2, len(one)), ((factor * standard_error(other)) ** 2, len(other))]
    total = math.fsum(part for part, _ in parts)
    if total == 0:
        return 0.0
    freedom = total**2 / math.fsum(part**2 / (n - 1) for part, n in parts)
    return float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(total)


def _normal(confidence: float) -> float:
    return float(scipy.special.ndtri((1 + confidence) / 2))
