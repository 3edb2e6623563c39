"""Probabilities of long waits.

Light tails decay exponentially (Cramér-Lundberg), heavy tails like a power (Pakes 1975; Veraverbeke 1977).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import scipy

from simqueue.theory.domain import positive, stable


def decay_rate(arrival_rate: float, moment_generating: Callable[[float], float], highest: float) -> float:
    """Return θ with P(wait > t) ~ K exp(-θ t) in M/G/1: the positive root of λ (E[exp(θ S)] - 1) = θ.

    Parameters
    ----------
    arrival_rate : float
        Per second; the queue must be stable.
    moment_generating : callable
        θ -> E[exp(θ S)].
    highest : float
        Upper bound of the root, for example the θ from which on E[exp(θ S)] is infinite.
    """
    positive("arrival_rate", arrival_rate)
    positive("highest", highest)

    def excess(theta: float) -> float:
        return arrival_rate * (moment_generating(theta) - 1) - theta

    return float(scipy.optimize.brentq(excess, highest * 1e-9, highest * (1 - 1e-12), xtol=1e-15, rtol=1e-14))


def md1_decay(arrival_rate: float, service_s: float) -> tuple[float, float]:
    """Return (θ, K) of P(wait > t) ~ K exp(-θ t) in M/D/1; at the 99th percentile the tail has seven exact digits."""
    positive("arrival_rate", arrival_rate)
    positive("service_s", service_s)
    utilisation = arrival_rate * service_s
    stable(utilisation)
    high = 1.0
    while utilisation * math.expm1(high) < high:
        high *= 2
    theta = decay_rate(utilisation, math.exp, high)
    return theta / service_s, (1 - utilisation) / (utilisation * math.exp(theta) - 1)


def md1_wait_tail_quantile(arrival_rate: float, service_s: float, p: float) -> float:
    """Return the `p`-quantile of the M/D/1 wait in seconds from its exponential tail; for p >= 0.9."""
    theta, factor = md1_decay(arrival_rate, service_s)
    return max(0.0, math.log(factor / (1 - p)) / theta)


def fcfs_wait_tail(utilisation: float, equilibrium_tail: float) -> float:
    """Return the asymptote of P(wait > t) under FCFS with subexponential service: ρ/(1-ρ) P(S_e > t).

    S_e is the equilibrium (residual) service time, whose tail is heavier than that of S by one power: with Pareto
    service times of power α the waits have power α - 1.

    Parameters
    ----------
    utilisation : float
    equilibrium_tail : float
        P(S_e > t) = ∫ P(S > u) du over u > t, divided by E[S].
    """
    stable(utilisation)
    return utilisation / (1 - utilisation) * equilibrium_tail


def ps_sojourn_tail(utilisation: float, service_tail: Callable[[float], float], t_s: float) -> float:
    """Return the asymptote of P(sojourn > t) under processor sharing with a power tail: P(S > (1-ρ) t).

    The power is that of the service times, because short jobs do not wait for long ones.
    """
    stable(utilisation)
    return service_tail((1 - utilisation) * t_s)
