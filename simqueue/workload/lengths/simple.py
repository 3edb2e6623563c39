"""Length distributions on whole numbers: constant, and uniform on a range."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from simqueue.workload.lengths.base import Bounds, Floats, LengthDistribution, Tokens


@dataclass(frozen=True, slots=True)
class ConstantLength(LengthDistribution):
    """All lengths are `tokens`."""

    tokens: int

    @classmethod
    def of(cls, value: int, bounds: Bounds) -> ConstantLength:
        """Return a constant length within its bounds.

        Raises
        ------
        InputError
            If the value is outside bounds that are to be resampled.
        """
        tokens = int(bounds.applied(np.array([value], dtype=np.float64))[0])
        if bounds.resample and tokens != value:
            raise bounds.error()
        return cls(tokens)

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return equal lengths; see `LengthDistribution.of_uniforms`."""
        return np.full(len(uniforms), self.tokens, dtype=np.int64)

    def mean(self) -> float:
        """Return the length itself."""
        return float(self.tokens)

    def variance(self) -> float:
        """Return 0."""
        return 0.0


@dataclass(frozen=True, slots=True)
class UniformLength(LengthDistribution):
    """Whole numbers from `low` to `high`, equally likely, clipped to `bounds` afterwards."""

    low: int
    high: int
    bounds: Bounds

    @classmethod
    def of(cls, low: int, high: int, bounds: Bounds) -> UniformLength:
        """Return the distribution on the values that can be drawn.

        Raises
        ------
        InputError
            If no value is inside bounds that are to be resampled.
        """
        if bounds.resample:
            low, high = max(low, bounds.low), min(high, high if bounds.high is None else bounds.high)
        if low > high:
            raise bounds.error()
        return cls(low, high, bounds)

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number; see `LengthDistribution.of_uniforms`."""
        return self.bounds.applied(self.low + np.floor(uniforms * (self.high - self.low + 1)))

    def mean(self) -> float:
        """Return the exact mean."""
        return float(self._moment(1))

    def variance(self) -> float:
        """Return the exact variance."""
        return float(self._moment(2) - self._moment(1) ** 2)

    def _moment(self, power: int) -> Fraction:
        """Return E[N^power] for power 1 or 2: the values clipped to either bound, and the whole numbers between."""
        low, high, least = self.low, self.high, self.bounds.low
        most = high if self.bounds.high is None else self.bounds.high
        count = high - low + 1
        at_least = min(max(0, least - low), count)
        at_most = min(max(0, high - most), count)
        total = at_least * least**power + at_most * most**power
        inner_low, inner_high = max(low, least), min(high, most)
        if inner_low <= inner_high:
            total += _power_sum(inner_high, power) - _power_sum(inner_low - 1, power)
        return Fraction(total, count)


def _power_sum(n: int, power: int) -> int:
    """Return 1^power + ... + n^power for power 1 or 2."""
    return n * (n + 1) // 2 if power == 1 else n * (n + 1) * (2 * n + 1) // 6
