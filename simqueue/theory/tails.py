"""Probabilities of long waits.

Light tails decay exponentially (Cramér-Lundberg), heavy tails like a power (Pakes 1975; Veraverbeke 1977).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import scipy

from simqueue.errors import InputError
from simqueue.theory.constant_service import constant_service
from simqueue.theory.domain import at_least, positive, share

_TAIL_ERROR = 1e-3
"""Largest relative error of a quantile that is taken from the asymptote."""


def decay_rate(arrival_rate: float, moment_generating: Callable[[float], float], highest: float) -> float:
    """Return θ with P(wait > t) ~ K exp(-θ t) in M/G/1: the positive root of λ (E[exp(θ S)] - 1) = θ.

    Parameters
    ----------
    arrival_rate : float
        Per second; the queue must be stable.
    moment_generating : callable
        θ -> E[exp(θ S)], finite below `highest`.
    highest : float
        Upper bound of the root, for example the θ from which on E[exp(θ S)] is infinite. The root must be above
        highest / 1,000,000,000.
    """
    positive("arrival_rate", arrival_rate)
    positive("highest", highest)

    def excess(theta: float) -> float:
        return arrival_rate * (moment_generating(theta) - 1) - theta

    low, high = highest * 1e-9, highest * (1 - 1e-12)
    if not excess(low) < 0 < excess(high):
        raise InputError(
            f"arrival_rate = {arrival_rate:g}, highest = {highest:g}: must be those of a stable queue, with "
            "its root between highest / 1e9 and highest"
        )
    return float(scipy.optimize.brentq(excess, low, high, xtol=low * 1e-9, rtol=1e-14))


@dataclass(frozen=True, slots=True)
class ExponentialTail:
    """θ and K of P(wait > t) ~ K exp(-θ t).

    Attributes
    ----------
    decay_per_s, factor : float
    """

    decay_per_s: float
    factor: float


def md1_decay(arrival_rate: float, service_s: float) -> ExponentialTail:
    """Return the decay θ and the factor K of P(wait > t) ~ K exp(-θ t) in M/D/1.

    Parameters
    ----------
    arrival_rate, service_s : float
        Per second and in seconds; their product is > 0 and < 1.
    """
    queue = constant_service(arrival_rate, service_s)
    return ExponentialTail(queue.decay / service_s, math.exp(queue.log_factor))


def md1_wait_tail_quantile(arrival_rate: float, service_s: float, p: float) -> float:
    """Return the `p`-quantile of the M/D/1 wait in seconds from its exponential tail.

    Parameters
    ----------
    arrival_rate, service_s : float
        Per second and in seconds; their product is > 0 and < 1.
    p : float
        From 0.9 to below 1, and so high that the tail is exponential there: to 0.1 % of the quantile. At low loads only
        very high quantiles are; `md1_wait_quantile` is exact for all.
    """
    if not 0.9 <= p < 1:
        raise InputError(f"p = {p:g}: must be at least 0.9 and < 1")
    queue = constant_service(arrival_rate, service_s)
    exact, tail = queue.wait_quantile(p), queue.tail_quantile(p)
    if not abs(tail - exact) <= _TAIL_ERROR * exact:
        raise InputError(
            f"p = {p:g}: must be higher at a utilisation of {queue.utilisation:.6g}, because the tail of the wait is "
            "not exponential there; use md1_wait_quantile"
        )
    return service_s * tail


def fcfs_wait_tail(utilisation: float, equilibrium_tail: float) -> float:
    """Return the asymptote of P(wait > t) under FCFS with subexponential service: ρ/(1-ρ) P(S_e > t).

    S_e is the equilibrium (residual) service time, whose tail is heavier than that of S by one power: with Pareto
    service times of power α the waits have power α - 1.

    Parameters
    ----------
    utilisation : float
        > 0 and < 1.
    equilibrium_tail : float
        P(S_e > t) = ∫ P(S > u) du over u > t, divided by E[S].
    """
    share("utilisation", utilisation)
    if not 0 <= equilibrium_tail <= 1:
        raise InputError(f"equilibrium_tail = {equilibrium_tail:g}: must be a probability, from 0 to 1")
    return utilisation / (1 - utilisation) * equilibrium_tail


def ps_sojourn_tail(utilisation: float, service_tail: Callable[[float], float], t_s: float) -> float:
    """Return the asymptote of P(sojourn > t) under processor sharing with a power tail: P(S > (1-ρ) t).

    The power is that of the service times, because short jobs do not wait for long ones.

    Parameters
    ----------
    utilisation : float
        > 0 and < 1.
    service_tail : callable
        t -> P(S > t).
    t_s : float
        Seconds, at least 0.
    """
    share("utilisation", utilisation)
    at_least("t_s", t_s, 0)
    return service_tail((1 - utilisation) * t_s)
