"""Renewal processes: independent gaps with one distribution. Exponential (Poisson), gamma, Weibull.

The first arrival is one gap after time 0, as in vLLM's benchmark. Each gap takes one uniform number, inverted. So
another rate stretches the same pattern, and another distribution keeps the order of the gaps by length.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy

from simqueue.workload.arrivals.base import (
    AT_ONCE,
    ArrivalProcess,
    Floats,
    Times,
    before,
    running_sum,
    unit_exponentials,
)

_STEADY_FROM = 1e16
"""Gamma gaps of a larger shape differ by less than floats resolve."""


@dataclass(frozen=True, slots=True)
class RenewalProcess(ArrivalProcess):
    """Independent gaps with one distribution.

    Attributes
    ----------
    rate_rps : float
        Mean arrival rate.
    normalize_to_rate : bool
        Whether all times are rescaled so that the last arrival is at number / rate_rps.
    """

    rate_rps: float
    normalize_to_rate: bool = False

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def dispersion(self) -> float | None:
        """That of a renewal process is the SCV of its gaps."""
        return self.gap_scv

    @abstractmethod
    def unit_gaps(self, uniforms: Floats) -> Floats:
        """Return gaps of mean 1, one for each uniform in [0, 1)."""

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`."""
        limit = self._limit(num_requests, until_s)
        pieces: list[Times] = []
        made, last_s = 0, 0.0
        while made < limit and (until_s is None or last_s < until_s):
            units = self.unit_gaps(rng.random(min(limit - made, AT_ONCE)))
            with np.errstate(over="ignore"):  # a gap beyond the largest float is after any until_s
                gaps = units / self.rate_rps
            pieces.append(running_sum(last_s, gaps))
            made += len(gaps)
            last_s = float(pieces[-1][-1])
        times = np.concatenate(pieces) if pieces else np.empty(0)
        if self.normalize_to_rate and last_s > 0:
            times *= (made / self.rate_rps) / last_s
        return before(times, until_s)


@dataclass(frozen=True, slots=True)
class PoissonArrivals(RenewalProcess):
    """Independent exponential gaps."""

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: 1 for exponential gaps."""
        return 1.0

    def unit_gaps(self, uniforms: Floats) -> Floats:
        """Return exponentials of mean 1; see `RenewalProcess.unit_gaps`."""
        return unit_exponentials(uniforms)


@dataclass(frozen=True, slots=True)
class GammaArrivals(RenewalProcess):
    """Independent gamma gaps: burstier than Poisson for a shape below 1, steadier above.

    Attributes
    ----------
    shape : float
        Shape of the gamma distribution, vLLM's burstiness; infinity for evenly spaced arrivals.
    """

    shape: float = 1.0

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: one over the shape."""
        return 1 / self.shape

    def unit_gaps(self, uniforms: Floats) -> Floats:
        """Return gamma variates of mean 1; see `RenewalProcess.unit_gaps`."""
        if self.shape > _STEADY_FROM:
            return np.ones(len(uniforms))
        return np.asarray(scipy.special.gammaincinv(self.shape, uniforms) / self.shape)


@dataclass(frozen=True, slots=True)
class WeibullArrivals(RenewalProcess):
    """Independent Weibull gaps: like gamma, with a heavier tail at the same cv above 1.

    Attributes
    ----------
    cv : float
        Coefficient of variation of the gaps.
    """

    cv: float = 1.0

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps."""
        return self.cv**2

    @property
    def shape(self) -> float:
        """The k that solves Gamma(1 + 2/k) / Gamma(1 + 1/k)² = 1 + cv²."""

        def excess(k: float) -> float:
            return math.lgamma(1 + 2 / k) - 2 * math.lgamma(1 + 1 / k) - math.log1p(self.gap_scv)

        return float(scipy.optimize.brentq(excess, 0.05, 500, xtol=1e-15, rtol=1e-14))

    def unit_gaps(self, uniforms: Floats) -> Floats:
        """Return Weibull variates of mean 1; see `RenewalProcess.unit_gaps`."""
        k = self.shape
        return np.asarray(unit_exponentials(uniforms) ** (1 / k) / math.exp(math.lgamma(1 + 1 / k)))
