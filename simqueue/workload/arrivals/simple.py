"""Arrivals without randomness: evenly spaced, or all at one instant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simqueue.workload.arrivals.base import ArrivalProcess, Times, before


@dataclass(frozen=True, slots=True)
class ConstantArrivals(ArrivalProcess):
    """Evenly spaced arrivals. Arrival i, counted from 0, is at i / rate_rps, so the first is at time 0."""

    rate_rps: float

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of the gaps: 0 for equal gaps."""
        return 0.0

    @property
    def dispersion(self) -> float:
        """The number of arrivals in a long window does not vary: 0."""
        return 0.0

    def times(
        self, _rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`. No random number is drawn."""
        limit = self._limit(num_requests, until_s)
        if until_s is not None:
            limit = min(limit, math.ceil(until_s * self.rate_rps) + 1)
        return before(np.arange(limit) / self.rate_rps, until_s)


@dataclass(frozen=True, slots=True)
class AllAtOnce(ArrivalProcess):
    """All requests arrive at `at_s`: the offline case, a batch job."""

    at_s: float

    @property
    def mean_rate_rps(self) -> float | None:
        """Undefined: there are no gaps."""
        return None

    @property
    def gap_scv(self) -> float | None:
        """Undefined: there are no gaps."""
        return None

    @property
    def dispersion(self) -> float | None:
        """Undefined: there is no long window."""
        return None

    def times(
        self, _rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return `num_requests` equal times in seconds; see `ArrivalProcess.times`."""
        return before(np.full(self._limit(num_requests, until_s), self.at_s), until_s)
