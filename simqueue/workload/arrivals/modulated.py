"""Bursts: Poisson arrivals whose rate switches between two values after exponential times.

With two positive rates this is the two-state Markov-modulated Poisson process, MMPP(2). With no arrivals between the
bursts it is an on-off process (interrupted Poisson process). Its four parameters follow from the mean rate, the peak to
mean ratio, the mean burst duration and the calm rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simqueue.workload.arrivals.base import (
    AT_ONCE,
    ArrivalProcess,
    Floats,
    Times,
    before,
    running_sum,
    unit_exponentials,
)

_SOJOURNS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class BurstArrivals(ArrivalProcess):
    """Two states with a Poisson process each; the initial state has the long-run probabilities.

    Attributes
    ----------
    rate_rps : float
        Mean arrival rate.
    peak_to_mean, calm_to_mean : float
        Rates in a burst and between bursts over the mean rate; above 1, and from 0 to below 1.
    mean_burst_s : float
        Mean duration of a burst.
    """

    rate_rps: float
    peak_to_mean: float
    mean_burst_s: float
    calm_to_mean: float = 0.0

    @property
    def mean_rate_rps(self) -> float:
        """Long-run arrivals per second."""
        return self.rate_rps

    @property
    def burst_share(self) -> float:
        """Share of time in bursts."""
        return (1 - self.calm_to_mean) / (self.peak_to_mean - self.calm_to_mean)

    @property
    def mean_calm_s(self) -> float:
        """Mean time between two bursts, in seconds."""
        return self.mean_burst_s * (1 - self.burst_share) / self.burst_share

    @property
    def rates_rps(self) -> Floats:
        """Rates in a burst and between bursts, shape (2,)."""
        return self.rate_rps * np.array([self.peak_to_mean, self.calm_to_mean])

    @property
    def gap_scv(self) -> float:
        """Squared coefficient of variation of a gap in the long run, from its phase-type moments."""
        rates, leave = self.rates_rps, 1 / np.array([self.mean_burst_s, self.mean_calm_s])
        no_arrival = np.array([[-leave[0], leave[0]], [leave[1], -leave[1]]]) - np.diag(rates)
        at_arrivals = np.array([self.burst_share, 1 - self.burst_share]) * rates / self.rate_rps
        twice = np.linalg.solve(no_arrival, np.linalg.solve(no_arrival, np.ones(2)))
        return float(2 * (at_arrivals @ twice) * self.rate_rps**2 - 1)

    @property
    def dispersion(self) -> float:
        """Limit of the index of dispersion of counts (Heffes and Lucantoni 1986)."""
        burst_rps, calm_rps = self.rates_rps.tolist()
        end, begin = 1 / self.mean_burst_s, 1 / self.mean_calm_s
        return float(
            1
            + 2
            * (burst_rps - calm_rps) ** 2
            * end
            * begin
            / ((end + begin) ** 2 * (burst_rps * begin + calm_rps * end))
        )

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`.

        They are the times at which the integral of the rate reaches the arrivals of a Poisson process of rate 1.
        """
        limit = self._limit(num_requests, until_s)
        states, arrivals = rng.spawn(2)
        integral = _RateIntegral(self, states)
        pieces: list[Times] = []
        made, last_unit, last_s = 0, 0.0, 0.0
        while made < limit and (until_s is None or last_s < until_s):
            units = running_sum(last_unit, unit_exponentials(arrivals.random(min(limit - made, AT_ONCE))))
            pieces.append(integral.times(units))
            made += len(units)
            last_unit, last_s = float(units[-1]), float(pieces[-1][-1])
        return before(np.concatenate(pieces), until_s)


class _RateIntegral:
    """The integral of the rate as a function of time, drawn as far as it is needed."""

    def __init__(self, process: BurstArrivals, rng: np.random.Generator) -> None:
        self._rng = rng
        self._means_s = np.array([process.mean_burst_s, process.mean_calm_s])
        self._rates = process.rates_rps
        self._state = 0 if rng.random() < process.burst_share else 1
        self._times_s = np.zeros(1)
        self._areas = np.zeros(1)

    def times(self, areas: Floats) -> Times:
        """Return the times at which the integral reaches these values: ascending, and above all earlier ones."""
        while self._areas[-1] <= areas[-1]:
            self._extend()
        found = np.interp(areas, self._areas, self._times_s)
        kept = max(0, int(np.searchsorted(self._areas, areas[-1], side="right")) - 1)
        self._areas, self._times_s = self._areas[kept:], self._times_s[kept:]
        return found

    def _extend(self) -> None:
        # An even number of sojourns, so that every batch starts in the same state.
        states = (self._state + np.arange(_SOJOURNS_AT_ONCE)) % 2
        sojourns_s = unit_exponentials(self._rng.random(_SOJOURNS_AT_ONCE)) * self._means_s[states]
        ends_s = running_sum(float(self._times_s[-1]), sojourns_s)
        areas = running_sum(float(self._areas[-1]), sojourns_s * self._rates[states])
        self._times_s = np.concatenate((self._times_s, ends_s))
        self._areas = np.concatenate((self._areas, areas))
