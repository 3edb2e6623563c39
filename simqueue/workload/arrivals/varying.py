"""Poisson arrivals whose rate follows a curve: a sinusoid, or a table of rates (`curves` reads tables from files).

Times are made by thinning (Lewis and Shedler 1979): candidates arrive at the highest rate, and a candidate at time t is
kept with probability rate(t) / highest rate. A candidate takes two uniform numbers. A curve that ends is not continued:
asking for requests beyond its end is an error, unless it has ``repeat: true``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simqueue.errors import InputError
from simqueue.workload.arrivals.base import (
    AT_ONCE,
    ArrivalProcess,
    Floats,
    Times,
    before,
    running_sum,
    unit_exponentials,
)
from simqueue.workload.limits import check_number


class VaryingArrivals(ArrivalProcess):
    """A Poisson process with a rate that changes with time."""

    @property
    def gap_scv(self) -> float | None:
        """Undefined: the distribution of the gaps changes with time."""
        return None

    @property
    def dispersion(self) -> float | None:
        """Undefined: the distribution of the counts changes with the window."""
        return None

    @property
    @abstractmethod
    def mean_rate_rps(self) -> float:
        """Arrivals per second over one period, or over the whole curve."""

    @property
    @abstractmethod
    def peak_rate_rps(self) -> float:
        """The highest rate of the curve."""

    @property
    def ends_s(self) -> float:
        """When the curve ends; infinity if it does not end."""
        return math.inf

    @abstractmethod
    def rates_rps(self, time_s: Times) -> Floats:
        """Return the rate at each time; 0 after the end."""

    def check(
        self, rng: Callable[[], np.random.Generator], *, num_requests: int | None = None, until_s: float | None = None
    ) -> None:
        """Draw the arrivals if the curve ends: only then is it known whether there are enough before its end."""
        self._limit(num_requests, until_s)
        if math.isfinite(self.ends_s):
            self.times(rng(), num_requests=num_requests, until_s=until_s)

    def _limit(self, num_requests: int | None, until_s: float | None) -> int:
        """Check also the number of candidates; see `ArrivalProcess`."""
        limit, peak = super()._limit(num_requests, until_s), self.peak_rate_rps
        check_number((num_requests or 0) * peak / self.mean_rate_rps if until_s is None else peak * until_s)
        return limit

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`."""
        peak = self.peak_rate_rps
        self._limit(num_requests, until_s)
        stop_s = min(self.ends_s, math.inf if until_s is None else until_s)
        pieces: list[Times] = [np.empty(0)]
        made, last_s = 0, 0.0
        while last_s < stop_s and (num_requests is None or made < num_requests):
            uniforms = rng.random((AT_ONCE, 2))
            candidates = running_sum(last_s, unit_exponentials(uniforms[:, 0]) / peak)
            pieces.append(candidates[uniforms[:, 1] * peak < self.rates_rps(candidates)])
            made += len(pieces[-1])
            last_s = float(candidates[-1])
        times = before(np.concatenate(pieces), None if stop_s == math.inf else stop_s)
        return self._enough(times, num_requests, until_s)

    def _enough(self, times: Times, num_requests: int | None, until_s: float | None) -> Times:
        """Cut at the given number; InputError if there are fewer because the curve has ended."""
        if num_requests is not None and len(times) >= num_requests:
            return times[:num_requests]
        if until_s is None or until_s > self.ends_s:
            wanted = f"{num_requests} requests" if until_s is None else f"arrivals for {until_s:g} s"
            raise InputError(
                f"the rate curve ends after {self.ends_s:g} s with {len(times)} requests, but the workload needs "
                f"{wanted}; give a smaller number, or repeat: true",
                "process",
            )
        return times


@dataclass(frozen=True, slots=True)
class SinusoidArrivals(VaryingArrivals):
    """The rate oscillates around its mean: rate_rps (1 + amplitude sin(2 pi (t - phase_s) / period_s))."""

    rate_rps: float
    amplitude: float
    period_s: float
    phase_s: float

    @property
    def mean_rate_rps(self) -> float:
        """Arrivals per second over a period."""
        return self.rate_rps

    @property
    def peak_rate_rps(self) -> float:
        """The highest rate of the curve."""
        return self.rate_rps * (1 + self.amplitude)

    def rates_rps(self, time_s: Times) -> Floats:
        """Return the rate at each time."""
        angle = 2 * np.pi * ((time_s - self.phase_s) / self.period_s)
        return np.asarray(self.rate_rps * (1 + self.amplitude * np.sin(angle)))


@dataclass(frozen=True, slots=True, eq=False)
class TabulatedArrivals(VaryingArrivals):
    """The rate is constant in each of several intervals.

    Attributes
    ----------
    interval_ends_s, interval_rates_rps : float64 arrays, shape (n,)
        Ends of the intervals, ascending, the first of which begins at 0; and their rates, not all 0.
    repeat : bool
        Whether the curve starts over at its end.
    """

    interval_ends_s: Floats
    interval_rates_rps: Floats
    repeat: bool

    @property
    def mean_rate_rps(self) -> float:
        """Arrivals per second over the whole curve."""
        lengths_s = np.diff(self.interval_ends_s, prepend=0.0)
        return float(lengths_s @ self.interval_rates_rps / self.interval_ends_s[-1])

    @property
    def peak_rate_rps(self) -> float:
        """The highest rate of the curve."""
        return float(self.interval_rates_rps.max())

    @property
    def ends_s(self) -> float:
        """When the curve ends; infinity if it starts over."""
        return math.inf if self.repeat else float(self.interval_ends_s[-1])

    def rates_rps(self, time_s: Times) -> Floats:
        """Return the rate at each time; 0 after the end."""
        since_s = np.mod(time_s, self.interval_ends_s[-1]) if self.repeat else time_s
        return np.append(self.interval_rates_rps, 0.0)[np.searchsorted(self.interval_ends_s, since_s, side="right")]
