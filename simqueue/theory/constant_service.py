"""The wait in M/D/1, in units of the service time: exact sums of positive terms, and the exponential tail.

Erlang's alternating series for P(wait <= t) loses all digits for large t. The formula here has positive terms only
(Franx 2001, A simple solution for the M/D/c waiting time distribution). Let k be the first whole number above t. A
customer waits at most t exactly if, for some j, it finds at most k - 1 - j customers waiting and there are j arrivals
in the remaining time k - t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from simqueue.theory.domain import positive, product, unused

_SUMMED_TO = 20
"""Service times from which on the tail is exponential in all digits: the next term decays like exp(-2.08 t)."""
_STATES = _SUMMED_TO + 80
_SERIES_BELOW = 0.5


@dataclass(frozen=True, eq=False)
class ConstantService:
    """M/D/1 with a service time of 1.

    Attributes
    ----------
    utilisation, idle : float
        ρ and 1 - ρ, both with all their digits.
    decay, log_factor : float
        θ and log K of P(wait > t) ~ K exp(-θ t).
    at_most, above : array
        P(N <= n) and P(N > n) for n = 0, 1, ... customers in the system.
    """

    utilisation: float
    idle: float
    decay: float
    log_factor: float
    at_most: NDArray[Any]
    above: NDArray[Any]

    def wait_at_most(self, t: float) -> float:
        """Return P(wait <= t) for t >= 0."""
        if t > _SUMMED_TO:
            return -math.expm1(self.log_factor - self.decay * t)
        k, arrivals, _ = self._until_next(t)
        return float(self.at_most[k:0:-1] @ arrivals)

    def wait_above(self, t: float) -> float:
        """Return P(wait > t) for t >= 0."""
        if t > _SUMMED_TO:
            return math.exp(self.log_factor - self.decay * t)
        k, arrivals, more = self._until_next(t)
        return float(self.above[k:0:-1] @ arrivals) + more

    def wait_quantile(self, p: float) -> float:
        """Return the t with P(wait <= t) = p, or 0 if a share of at least p does not wait."""

        def excess(t: float) -> float:
            # The smaller of the two probabilities has more digits.
            return self.wait_at_most(t) - p if p < 0.5 else (1 - p) - self.wait_above(t)

        if excess(0) >= 0:
            return 0.0
        if excess(_SUMMED_TO) <= 0:
            return self.tail_quantile(p)
        return float(scipy.optimize.brentq(excess, 0, _SUMMED_TO, xtol=1e-15, rtol=1e-14))

    def tail_quantile(self, p: float) -> float:
        """Return the t with K exp(-θ t) = 1 - p."""
        return (self.log_factor - math.log1p(-p)) / self.decay

    def _until_next(self, t: float) -> tuple[int, NDArray[Any], float]:
        """Return k, the chances of 0 .. k - 1 arrivals in k - t, and that of more."""
        k = math.floor(t) + 1
        rest = self.utilisation * (k - t)
        j = np.arange(k)
        arrivals = np.exp(-rest + j * math.log(rest) - scipy.special.gammaln(j + 1))
        return k, arrivals, float(scipy.special.gammainc(k, rest))


def constant_service(arrival_rate: float, service_s: float) -> ConstantService:
    """Return M/D/1; raise `InputError` unless arrival_rate x service_s is > 0 and < 1."""
    positive("arrival_rate", arrival_rate)
    positive("service_s", service_s)
    return _solved(arrival_rate * service_s, unused(product(arrival_rate, service_s)))


@lru_cache(maxsize=32)
def _solved(utilisation: float, idle: float) -> ConstantService:
    # 1 - ρ is given by itself, because it has more digits than ρ can say.
    decay = _decay(idle / utilisation)
    chance = _in_system(utilisation, idle)
    # Beyond the last state the chances are a geometric series.
    beyond = chance[-1] / math.expm1(decay)
    above = np.append(np.cumsum(chance[:0:-1])[::-1] + beyond, beyond)
    return ConstantService(utilisation, idle, decay, _log_factor(utilisation, idle, decay), np.cumsum(chance), above)


def _in_system(utilisation: float, idle: float) -> NDArray[Any]:
    """Return P(n in system) by the recursion of the embedded chain (all terms positive)."""
    n = np.arange(_STATES)
    more_than = scipy.special.gammainc(n + 1, utilisation)
    chance = np.zeros(_STATES)
    chance[0] = idle
    for i in range(1, _STATES):
        # Balance across the cut between i-1 and i: the rate up from 0..i-1 equals the rate down from i.
        up = chance[0] * more_than[i - 1] + np.dot(chance[1:i], more_than[i - 1 : 0 : -1])
        chance[i] = up * math.exp(utilisation)
    return chance


def _decay(odds: float) -> float:
    """Return the positive root θ of ρ (exp(θ) - 1) = θ; `odds` is (1 - ρ) / ρ.

    θ = 0 is a root too. Divided by ρ θ, and with 1 - ρ on the other side, the equation has only the positive one.
    """
    low = min(1.0, odds) * (1 - 1e-9)
    high = min(2 * odds, 2 * math.log(2 + odds) + 2) * (1 + 1e-9)

    def excess(theta: float) -> float:
        return _after(1, theta) / odds - 1

    return float(scipy.optimize.brentq(excess, low, high, xtol=low * 1e-15, rtol=1e-14))


def _log_factor(utilisation: float, idle: float, decay: float) -> float:
    # K = (1-ρ) / (ρ exp(θ) - 1) = (1-ρ) / (θ - (1-ρ)). Close to saturation θ is nearly 2 (1-ρ) and K nearly 1.
    if decay > _SERIES_BELOW:
        return math.log(idle / (decay - idle))
    return math.log1p(-2 * (idle**2 / utilisation - _after(2, decay)) / (decay - idle))


def _after(first: int, theta: float) -> float:
    """Return the sum of θ^j / (j + 1)! over j >= `first`: from 1, it is (exp(θ) - 1 - θ) / θ."""
    if theta > _SERIES_BELOW:
        return (math.expm1(theta) - theta) / theta - (theta / 2 if first == 2 else 0)
    return math.fsum(theta**j / math.factorial(j + 1) for j in range(first, first + 16))
