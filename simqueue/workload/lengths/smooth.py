"""Length distributions with a formula for their tail: lognormal, exponential, geometric (`heavy` has two more).

With S(k) = P(N >= k) for the tokens N in [min, max] (max can be infinite),

    E[N]  = min   + sum S(k)            over k = min+1 .. max
    E[N²] = min² + sum (2k - 1) S(k)    over the same k.

The first terms are summed one by one, at most 2^20. The rest is the integral of the same smooth functions between half
integers (midpoint rule). Its error is about 1/24 of the difference of the last two terms, so it begins where this is
below 1e-13 of the sum. Where that is not so after 2^20 terms, the error is below 1e-11.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy

from simqueue.workload.lengths.base import Bounds, Floats, LengthDistribution, Tokens

_SUMMED_TERMS = 2**20
_FIRST_TERMS = 2**12
_LEVEL = 24e-13
"""Difference of two terms, as a share of the sum, from which on the integral is as good as the sum."""

_RAREST_BOUNDS = 1e-6
"""Bounds with a smaller probability are an error: drawing again would take a million attempts."""


@dataclass(frozen=True, slots=True)
class SmoothLength(LengthDistribution):
    """A distribution given by its tail, its quantile function, and two integrals of the tail."""

    bounds: Bounds

    def __post_init__(self) -> None:
        at_least_min, above_max = self._edges()
        if at_least_min - above_max < _RAREST_BOUNDS:
            raise self.bounds.error()

    @abstractmethod
    def _at_least(self, x: Floats) -> Floats:
        """Return P(X >= x), before bounds."""

    def _above(self, x: Floats) -> Floats:
        """Return P(X > x), before bounds; equal to `_at_least` unless X has mass at single points."""
        return self._at_least(x)

    @abstractmethod
    def _quantile(self, p: Floats) -> Floats:
        """Return the x at which the distribution function reaches p, for 0 <= p < 1, before bounds."""

    @abstractmethod
    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        """Return the integrals over [a, b] of P(X >= t) and of 2 t P(X >= t); b can be infinite."""

    def _edges(self) -> tuple[float, float]:
        """Return P(X >= min) and P(X > max) of the values that are drawn: 1 and 0 if they are clipped afterwards."""
        if not self.bounds.resample:
            return 1.0, 0.0
        at_least_min = float(self._at_least(np.array([self.bounds.low], dtype=np.float64))[0])
        if self.bounds.high is None:
            return at_least_min, 0.0
        return at_least_min, float(self._above(np.array([self.bounds.high], dtype=np.float64))[0])

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number; see `LengthDistribution.of_uniforms`."""
        at_least_min, above_max = self._edges()
        p = (1 - at_least_min) + uniforms * (at_least_min - above_max)
        return self.bounds.applied(self._quantile(p))

    def mean(self) -> float:
        """Return the mean after bounds and rounding down (see the module's text)."""
        return self.bounds.low + self._tail_sums()[0]

    def variance(self) -> float:
        """Return the variance after bounds and rounding down (see the module's text)."""
        first, second = self._tail_sums()
        # Moments about min: E[(N - min)²] = sum (2 (k - min) - 1) S(k), which loses fewer digits.
        return max(0.0, second - 2 * self.bounds.low * first - first**2)

    def _tail_sums(self) -> tuple[float, float]:
        """Return the sums of S(k) and of (2k - 1) S(k) over k = min+1 .. max."""
        low, high = self.bounds.low, self.bounds.high
        end = math.inf if high is None else high
        last = int(min(end, low + _SUMMED_TERMS))
        first = second = 0.0
        summed, terms = low, _FIRST_TERMS
        while summed < last:
            k = np.arange(summed + 1, min(summed + terms, last) + 1, dtype=np.float64)
            tail = self._at_least(k)
            rising_tail = (2 * k - 1) * tail
            first, second = first + float(tail.sum()), second + float(rising_tail.sum())
            summed, terms = int(k[-1]), 2 * terms
            if _is_level(tail, first) and _is_level(rising_tail, second):
                break
        if end > summed:
            flat, rising = self._integrals(summed + 0.5, end + 0.5)
            first, second = first + flat, second + rising - flat
        at_least_min, above_max = self._edges()
        if above_max > 0 and high is not None:  # S(k) = (P(X >= k) - P(X > max)) / P(inside)
            first -= above_max * (high - low)
            second -= above_max * (high**2 - low**2)
        inside = at_least_min - above_max
        return first / inside, second / inside


def _is_level(terms: Floats, total: float) -> bool:
    """Return whether the last two terms hardly differ, compared with the sum."""
    return bool(np.ptp(terms[-2:]) <= _LEVEL * total)


@dataclass(frozen=True, slots=True)
class LognormalLength(SmoothLength):
    """The logarithm is normal with mean `mu` and standard deviation `sigma`."""

    mu: float
    sigma: float

    def _at_least(self, x: Floats) -> Floats:
        return np.asarray(scipy.special.ndtr((self.mu - np.log(x)) / self.sigma))

    def _quantile(self, p: Floats) -> Floats:
        return np.exp(self.mu + self.sigma * np.asarray(scipy.special.ndtri(p)))

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        # By parts: the boundary terms, and the partial moments E[X^j; a < X < b] of the lognormal.
        mu, sigma = self.mu, self.sigma
        low, high = (math.log(a) - mu) / sigma, (math.log(b) - mu) / sigma
        partial = [
            math.exp(j * mu + (j * sigma) ** 2 / 2) * _normal_between(low - j * sigma, high - j * sigma) for j in (1, 2)
        ]
        at_a, at_b = _normal_between(low, math.inf), _normal_between(high, math.inf)
        edge = [(b**j * at_b if math.isfinite(b) else 0.0) - a**j * at_a for j in (1, 2)]
        return partial[0] + edge[0], partial[1] + edge[1]


def _normal_between(low: float, high: float) -> float:
    """Return P(low < Z < high) for a standard normal Z, from the tail that loses no digits."""
    ndtr = scipy.special.ndtr
    return float(ndtr(-low) - ndtr(-high)) if low > 0 else float(ndtr(high) - ndtr(low))


@dataclass(frozen=True, slots=True)
class ExponentialLength(SmoothLength):
    """Exponential with mean `mean_tokens`."""

    mean_tokens: float

    def _at_least(self, x: Floats) -> Floats:
        return np.exp(-x / self.mean_tokens)

    def _quantile(self, p: Floats) -> Floats:
        return -self.mean_tokens * np.log1p(-p)

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        return _exponential_integrals(self.mean_tokens, a, b)


@dataclass(frozen=True, slots=True)
class GeometricLength(SmoothLength):
    """Geometric on 1, 2, 3, ... with mean `mean_tokens`: each token is the last with probability 1 / mean."""

    mean_tokens: float

    def _log_continue(self) -> float:
        """Return log(1 - 1/mean). For mean 1 it returns a number whose exponential is 0, which is the limit."""
        return math.log1p(-1 / self.mean_tokens) if self.mean_tokens > 1 else -1e4

    def _at_least(self, x: Floats) -> Floats:
        return np.exp((x - 1) * self._log_continue())

    def _above(self, x: Floats) -> Floats:
        return np.exp(x * self._log_continue())

    def _quantile(self, p: Floats) -> Floats:
        return 1 + np.floor(np.log1p(-p) / self._log_continue())

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        # With u = t - 1 the tail is exp(-u/scale), and 2 t = 2 u + 2.
        flat, rising = _exponential_integrals(-1 / self._log_continue(), a - 1, b - 1)
        return flat, rising + 2 * flat


def _exponential_integrals(scale: float, a: float, b: float) -> tuple[float, float]:
    """Return the integrals of exp(-t/scale) and of 2 t exp(-t/scale) over [a, b]."""
    at_a = math.exp(-a / scale)
    at_b = math.exp(-b / scale)
    to_b = (b + scale) * at_b if math.isfinite(b) else 0.0
    return scale * (at_a - at_b), 2 * scale * ((a + scale) * at_a - to_b)
