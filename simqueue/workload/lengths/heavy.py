"""Two more length distributions with a formula for their tail (see `smooth`): gamma and Pareto."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from simqueue.workload.lengths.base import Floats
from simqueue.workload.lengths.smooth import SmoothLength


@dataclass(frozen=True, slots=True)
class GammaLength(SmoothLength):
    """Gamma with a mean of shape times scale tokens."""

    shape: float
    scale: float

    def _at_least(self, x: Floats) -> Floats:
        return np.asarray(scipy.special.gammaincc(self.shape, x / self.scale))

    def _quantile(self, p: Floats) -> Floats:
        return np.asarray(self.scale * scipy.special.gammaincinv(self.shape, p))

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        # By parts, with the partial moments of the gamma density f: x^j f(x) is a gamma density of shape k + j.
        k, scale = self.shape, self.scale

        def above(x: float, j: int) -> float:
            return float(scipy.special.gammaincc(k + j, x / scale)) if math.isfinite(x) else 0.0

        found = []
        moment = 1.0
        for j in (1, 2):
            moment *= scale * (k + j - 1)
            edge = (b**j * above(b, 0) if math.isfinite(b) else 0.0) - a**j * above(a, 0)
            found.append(moment * (above(a, j) - above(b, j)) + edge)
        return found[0], found[1]


@dataclass(frozen=True, slots=True)
class ParetoLength(SmoothLength):
    """Pareto: P(X > x) = (scale / x)^alpha for x above `scale` tokens."""

    scale: float
    alpha: float

    def _at_least(self, x: Floats) -> Floats:
        return np.asarray((self.scale / np.maximum(x, self.scale)) ** self.alpha)

    def _quantile(self, p: Floats) -> Floats:
        return np.asarray(self.scale * np.exp(-np.log1p(-p) / self.alpha))

    def _integrals(self, a: float, b: float) -> tuple[float, float]:
        low, high = min(max(a, self.scale), b), max(b, self.scale)
        flat, rising = low - min(a, low), low**2 - min(a, low) ** 2  # below scale the tail is 1
        if high > low:
            flat += self._power(low, high, 1)
            rising += 2 * self._power(low, high, 2)
        return flat, rising

    def _power(self, low: float, high: float, j: int) -> float:
        """Return the integral of t^(j-1) (scale / t)^alpha over [low, high]."""
        power = j - self.alpha
        start: float = low**j * (self.scale / low) ** self.alpha
        if power == 0:
            return start * math.log(high / low)
        if not math.isfinite(high):
            return -start / power
        return start * math.expm1(power * math.log(high / low)) / power
