"""GI/M/1: exponential service times and independent gaps between arrivals; exact for gamma and constant gaps.

Serving benchmarks call the shape k of gamma gaps the burstiness. The squared coefficient of variation of the gaps is
1/k: 1 is a Poisson process, and smaller values of k are burstier. Source: Kleinrock, Queueing Systems I (1975),
chapter 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import scipy

from simqueue.theory.domain import MOST, positive, ratio, share, unused


def gamma_m1_root(arrival_rate: float, service_rate: float, burstiness: float) -> float:
    """Return the probability that an arrival finds the server busy in GI/M/1 with gamma gaps.

    It is the root σ in (0, 1) of σ = A*(μ (1 - σ)), where A* is the Laplace transform of the gaps.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.
    burstiness : float
        Shape of the gamma distribution, from 1e-30 to 1e+30; infinity means constant gaps (D/M/1).
    """
    return _found(arrival_rate, service_rate, burstiness).busy


def gamma_m1_mean_wait(arrival_rate: float, service_rate: float, burstiness: float) -> float:
    """Return the mean wait in seconds of GI/M/1 with gamma gaps.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.
    burstiness : float
        Shape of the gamma distribution, from 1e-30 to 1e+30; infinity means constant gaps (D/M/1).
    """
    found = _found(arrival_rate, service_rate, burstiness)
    return found.busy / (service_rate * found.idle)


def gamma_m1_mean_sojourn(arrival_rate: float, service_rate: float, burstiness: float) -> float:
    """Return the mean sojourn time in seconds of GI/M/1 with gamma gaps.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.
    burstiness : float
        Shape of the gamma distribution, from 1e-30 to 1e+30; infinity means constant gaps (D/M/1).
    """
    return 1 / (service_rate * _found(arrival_rate, service_rate, burstiness).idle)


def gamma_m1_sojourn_quantile(arrival_rate: float, service_rate: float, burstiness: float, p: float) -> float:
    """Return the `p`-quantile of the sojourn time of GI/M/1 in seconds; its distribution is exponential.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.
    burstiness : float
        Shape of the gamma distribution, from 1e-30 to 1e+30; infinity means constant gaps (D/M/1).
    p : float
        > 0 and < 1.
    """
    share("p", p)
    return -gamma_m1_mean_sojourn(arrival_rate, service_rate, burstiness) * math.log1p(-p)


@dataclass(frozen=True, slots=True)
class AtArrivals:
    """What an arrival finds in GI/M/1. One of the two is close to 0 at the ends of the range, and is found by itself.

    Attributes
    ----------
    busy, idle : float
        σ and 1 - σ.
    """

    busy: float
    idle: float


def _found(arrival_rate: float, service_rate: float, burstiness: float) -> AtArrivals:
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    load = ratio(arrival_rate, service_rate)
    unused(load)
    if burstiness != math.inf:
        positive("burstiness", burstiness)
    return gamma_m1_at_arrivals(load, burstiness)


def gamma_m1_at_arrivals(load: Fraction, burstiness: float) -> AtArrivals:
    """Return what arrivals with gamma gaps find in GI/M/1.

    Parameters
    ----------
    load : Fraction
        Arrival rate over service rate, > 0 and < 1.
    burstiness : float
        Shape of the gamma distribution; infinity means constant gaps (D/M/1).
    """
    gaps = _Gaps(float(1 / load), float((1 - load) / load), burstiness)
    if gaps.log_transform(0.5) > math.log(0.5):
        idle = gaps.idle()
        return AtArrivals(1 - idle, idle)
    busy = gaps.busy()
    return AtArrivals(busy, 1 - busy)


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Gamma gaps as customers of a server with rate 1 see them.

    Attributes
    ----------
    mean, excess : float
        Mean gap in service times, and what it is above 1.
    shape : float
    """

    mean: float
    excess: float
    shape: float

    def log_transform(self, idle: float) -> float:
        """Return log A*(1 - σ)."""
        if self.shape > MOST:
            return -self.mean * idle
        return -self.shape * math.log1p(self.mean * idle / self.shape)

    def busy(self) -> float:
        """Return σ <= 1/2: the larger root, 1, is far away."""

        def difference(log_busy: float) -> float:
            return log_busy - self.log_transform(-math.expm1(log_busy))

        low, high = self.log_transform(1.0), math.log(0.5)
        return math.exp(_root(difference, low, high)) if difference(low) < 0 else math.exp(low)

    def idle(self) -> float:
        """Return 1 - σ < 1/2. The root 0 of log A* = log σ is divided out, so that no digits are lost near it."""

        def difference(log_idle: float) -> float:
            return self._slope(math.exp(log_idle))

        low = -1.0
        while self._slope(math.exp(low)) <= 0:
            low -= 3
        return math.exp(_root(difference, low, math.log(0.5)))

    def _slope(self, idle: float) -> float:
        """Return (log(1 - idle) - log A*(idle)) / idle: positive below the root."""
        scaled = self.mean * idle / self.shape
        if scaled > 0.5:
            return (math.log1p(-idle) - self.log_transform(idle)) / idle
        beyond_linear = 0.0 if scaled == 0 else self.mean * _log1p_beyond_linear(scaled) / scaled
        return _log1p_beyond_linear(-idle) / idle + beyond_linear + self.excess


def _log1p_beyond_linear(x: float) -> float:
    """Return log(1 + x) - x for |x| <= 1/2, by the series of 2 atanh(r)."""
    r = x / (2 + x)
    return 2 * math.fsum(r**n / n for n in range(3, 37, 2)) - x * r


def _root(difference: Callable[[float], float], low: float, high: float) -> float:
    return float(scipy.optimize.brentq(difference, low, high, xtol=1e-15, rtol=1e-14))
