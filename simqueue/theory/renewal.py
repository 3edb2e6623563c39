"""GI/M/1: exponential service times and independent gaps between arrivals; exact for gamma and constant gaps.

Serving benchmarks call the shape k of gamma gaps the burstiness. The squared coefficient of variation of the gaps is
1/k: 1 is a Poisson process, and smaller values of k are burstier. Source: Kleinrock, Queueing Systems I (1975),
chapter 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import scipy

from simqueue.theory.domain import positive, share, stable


def gamma_m1_root(arrival_rate: float, service_rate: float, burstiness: float) -> float:
    """Return the probability that an arrival finds the server busy in GI/M/1 with gamma gaps.

    It is the root σ in (0, 1) of σ = A*(μ (1 - σ)), where A* is the Laplace transform of the gaps.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.
    burstiness : float
        Shape of the gamma distribution, > 0; infinity means constant gaps (D/M/1).
    """
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    stable(arrival_rate / service_rate)
    if math.isinf(burstiness):
        return _root(lambda sigma: math.exp(-(1 - sigma) * service_rate / arrival_rate))
    positive("burstiness", burstiness)
    scaled = service_rate / (burstiness * arrival_rate)
    return _root(lambda sigma: math.exp(-burstiness * math.log1p(scaled * (1 - sigma))))


def gamma_m1_mean_wait(arrival_rate: float, service_rate: float, burstiness: float) -> float:
    """Return the mean wait in seconds of GI/M/1 with gamma gaps; parameters as for `gamma_m1_root`."""
    sigma = gamma_m1_root(arrival_rate, service_rate, burstiness)
    return sigma / (service_rate * (1 - sigma))


def gamma_m1_mean_sojourn(arrival_rate: float, service_rate: float, burstiness: float) -> float:
    """Return the mean sojourn time in seconds of GI/M/1 with gamma gaps."""
    return 1 / (service_rate * (1 - gamma_m1_root(arrival_rate, service_rate, burstiness)))


def gamma_m1_sojourn_quantile(arrival_rate: float, service_rate: float, burstiness: float, p: float) -> float:
    """Return the `p`-quantile (0 < p < 1) of the sojourn time in seconds; its distribution is exponential."""
    share("p", p)
    return -gamma_m1_mean_sojourn(arrival_rate, service_rate, burstiness) * math.log1p(-p)


def _root(transform: Callable[[float], float]) -> float:
    # σ = 1 is always a root. The difference changes its sign at the other root, below 1.
    high = 1 - 1e-12
    return float(scipy.optimize.brentq(lambda sigma: transform(sigma) - sigma, 0, high, xtol=1e-15, rtol=1e-14))
