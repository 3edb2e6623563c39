"""Length laws with a formula for their tail: lognormal, exponential, geometric (gamma and Pareto have a module).

With S(k) = P(N >= k) for the tokens N in [min, max] (max may be infinite),

    E[N]  = min   + sum S(k)            over k = min+1 .. max
    E[N²] = min² + sum (2k - 1) S(k)    over the same k.

The first 2^20 terms are summed one by one. What is left, where there is any, is the integral of the same smooth
functions between half integers (midpoint rule); its error is below 1e-11 of the result, and 0 in practice,
because few laws reach beyond a million tokens.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from simqueue.settings import invalid
from simqueue.workload.lengths.base import TOKENS_UNIT, BoundedLaw
from simqueue.workload.limits import MOST_TOKENS

if TYPE_CHECKING:
    from simqueue.workload.lengths.base import Floats, Tokens

_SUMMED_TERMS = 2**20

_RAREST_BOUNDS = 1e-6
"""Bounds that hold less of the law than this are a mistake: drawing again would take a million tries."""

_LARGEST_SAMPLE = 1e15
"""Whole numbers up to here are exact as floats."""


_LARGEST_UNIFORM = 1 - 2.0**-53
"""The largest uniform number below 1."""

_LARGEST_SCORE = 8.209536151601387
"""Its normal score: the standard normal distribution function reaches it there."""


class SmoothLaw(BoundedLaw):
    """A law given by its tail, the inverse of its distribution function, and two integrals of the tail."""

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
        """Return the integrals over [a, b] of P(X >= t) and of 2 t P(X >= t); b may be infinite."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        at_least_min, above_max = self._edges()
        if at_least_min - above_max < _RAREST_BOUNDS:
            self._refuse_empty_bounds()
        if self.max is None and not self._longest() < _LARGEST_SAMPLE:
            raise invalid(f"without max this law reaches lengths above {_LARGEST_SAMPLE:g} tokens: give a max")
        return self

    def _longest(self) -> float:
        """Return the longest that can be drawn where there is no max, before rounding down."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return float(self._quantile(np.array([_LARGEST_UNIFORM]))[0])

    def _edges(self) -> tuple[float, float]:
        """Return P(X >= min) and P(X > max) of what is drawn: 1 and 0 when clipping comes later."""
        if self.bounds == "clip":
            return 1.0, 0.0
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        at_least_min = float(self._at_least(np.array([self.min], dtype=np.float64))[0])
        if self.max is None:
            return at_least_min, 0.0
        return at_least_min, float(self._above(np.array([self.max], dtype=np.float64))[0])

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number; see `LengthLaw.of_uniforms`."""
        at_least_min, above_max = self._edges()
        p = (1 - at_least_min) + uniforms * (at_least_min - above_max)
        return self._bounded(self._quantile(p))

    def mean(self) -> float:
        """Return the mean after bounds and rounding down (see the module's text)."""
        return self.min + self._tail_sums()[0]

    def variance(self) -> float:
        """Return the variance after bounds and rounding down (see the module's text)."""
        first, second = self._tail_sums()
        # Moments about min: E[(N - min)²] = sum (2 (k - min) - 1) S(k), which loses fewer digits.
        return max(0.0, second - 2 * self.min * first - first**2)

    def _tail_sums(self) -> tuple[float, float]:
        """Return the sums of S(k) and of (2k - 1) S(k) over k = min+1 .. max."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        end = math.inf if self.max is None else self.max
        last = int(min(end, self.min + _SUMMED_TERMS))
        k = np.arange(self.min + 1, last + 1, dtype=np.float64)
        tail = self._at_least(k)
        first, second = float(tail.sum()), float(((2 * k - 1) * tail).sum())
        if end > last:
            flat, rising = self._integrals(last + 0.5, end + 0.5)
            first, second = first + flat, second + rising - flat
        at_least_min, above_max = self._edges()
        if above_max > 0 and self.max is not None:  # S(k) = (P(X >= k) - P(X > max)) / P(inside)
            first -= above_max * (self.max - self.min)
            second -= above_max * (self.max**2 - self.min**2)
        inside = at_least_min - above_max
        return first / inside, second / inside


class LognormalLength(SmoothLaw):
    """The logarithm is normal: many short, few very long."""

    distribution: Literal["lognormal"] = Field(description="Lognormal: many short, few very long.")
    median: float | None = Field(
        default=None,
        gt=0,
        le=MOST_TOKENS,
        description="Median before bounds; or give mean.",
        json_schema_extra=TOKENS_UNIT,
    )
    mean_tokens: float | None = Field(
        default=None,
        gt=0,
        le=MOST_TOKENS,
        alias="mean",
        description="Mean before bounds; or give median.",
        json_schema_extra=TOKENS_UNIT,
    )
    sigma: float | None = Field(
        default=None, gt=0, le=10, description="Standard deviation of the logarithm; or give cv."
    )
    cv: float | None = Field(
        default=None, gt=0, le=1e6, description="Coefficient of variation before bounds; or give sigma."
    )

    def _parameters(self) -> tuple[float, float]:
        """Return mean and standard deviation of the logarithm."""
        from_cv = None if self.cv is None else math.sqrt(math.log1p(self.cv**2))
        sigma = _one_of("sigma", self.sigma, "cv", from_cv)
        from_median = None if self.median is None else math.log(self.median)
        from_mean = None if self.mean_tokens is None else math.log(self.mean_tokens) - sigma**2 / 2
        return _one_of("median", from_median, "mean", from_mean), sigma

    def _at_least(self, x: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)
        from scipy.special import ndtr  # noqa: PLC0415  (settings stay light to import)

        mu, sigma = self._parameters()
        return np.asarray(ndtr((mu - np.log(x)) / sigma))

    def _quantile(self, p: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)
        from scipy.special import ndtri  # noqa: PLC0415  (settings stay light to import)

        mu, sigma = self._parameters()
        return np.exp(mu + sigma * np.asarray(ndtri(p)))

    def _longest(self) -> float:
        mu, sigma = self._parameters()
        return math.exp(mu + sigma * _LARGEST_SCORE)

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        # By parts: the boundary terms, and the partial moments E[X^j; a < X < b] of the lognormal.
        mu, sigma = self._parameters()
        low, high = (math.log(a) - mu) / sigma, (math.log(b) - mu) / sigma
        partial = [
            math.exp(j * mu + (j * sigma) ** 2 / 2) * _normal_between(low - j * sigma, high - j * sigma) for j in (1, 2)
        ]
        at_a, at_b = _normal_between(low, math.inf), _normal_between(high, math.inf)
        edge = [(b**j * at_b if math.isfinite(b) else 0.0) - a**j * at_a for j in (1, 2)]
        return partial[0] + edge[0], partial[1] + edge[1]


def _one_of(name: str, value: float | None, other_name: str, other: float | None) -> float:
    """Return whichever of two values is given; exactly one must be."""
    if value is not None and other is None:
        return value
    if other is not None and value is None:
        return other
    raise invalid(f"lognormal needs exactly one of {name}, {other_name}")


def _normal_between(low: float, high: float) -> float:
    """Return P(low < Z < high) for a standard normal Z, from whichever tail loses no digits."""
    from scipy.special import ndtr  # noqa: PLC0415  (settings stay light to import)

    return float(ndtr(-low) - ndtr(-high)) if low > 0 else float(ndtr(high) - ndtr(low))


class ExponentialLength(SmoothLaw):
    """Exponential, rounded down to whole tokens."""

    distribution: Literal["exponential"] = Field(description="Exponential, rounded down to whole tokens.")
    mean_tokens: float = Field(
        gt=0,
        le=MOST_TOKENS,
        alias="mean",
        description="Mean before bounds and rounding.",
        json_schema_extra=TOKENS_UNIT,
    )

    def _at_least(self, x: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return np.exp(-x / self.mean_tokens)

    def _quantile(self, p: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return -self.mean_tokens * np.log1p(-p)

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        return _exponential_integrals(self.mean_tokens, a, b)


class GeometricLength(SmoothLaw):
    """Geometric on 1, 2, 3, ...: after each token the request ends with the same probability, 1 / mean."""

    distribution: Literal["geometric"] = Field(description="Geometric on 1, 2, 3, ... tokens.")
    mean_tokens: float = Field(
        ge=1, le=MOST_TOKENS, alias="mean", description="Mean before bounds.", json_schema_extra=TOKENS_UNIT
    )

    def _log_going_on(self) -> float:
        """Return log(1 - 1/mean); for mean 1 a number whose exponential is 0, as the limit has it."""
        return math.log1p(-1 / self.mean_tokens) if self.mean_tokens > 1 else -1e4

    def _at_least(self, x: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return np.exp((x - 1) * self._log_going_on())

    def _above(self, x: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return np.exp(x * self._log_going_on())

    def _quantile(self, p: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        return 1 + np.floor(np.log1p(-p) / self._log_going_on())

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        # With u = t - 1 the tail is exp(-u/scale), and 2 t = 2 u + 2.
        flat, rising = _exponential_integrals(-1 / self._log_going_on(), a - 1, b - 1)
        return flat, rising + 2 * flat


def _exponential_integrals(scale: float, a: float, b: float) -> tuple[float, float]:
    """Return the integrals of exp(-t/scale) and of 2 t exp(-t/scale) over [a, b]."""
    at_a = math.exp(-a / scale)
    at_b = math.exp(-b / scale)
    to_b = (b + scale) * at_b if math.isfinite(b) else 0.0
    return scale * (at_a - at_b), 2 * scale * ((a + scale) * at_a - to_b)
