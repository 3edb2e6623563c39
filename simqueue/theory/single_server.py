"""One server, first come, first served: M/M/1, M/D/1, M/G/1 with Poisson arrivals; bounds for GI/GI/1.

Rates are per second and times in seconds, or in any other unit used throughout. The wait is the time before service,
and the sojourn is the wait plus the service. Source, unless another is named: Kleinrock, Queueing Systems I (1975),
chapters 3 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from simqueue.errors import InputError
from simqueue.theory.domain import at_least, positive, share, stable


@dataclass(frozen=True, slots=True)
class SingleServer:
    """Steady-state means of a single-server queue.

    Attributes
    ----------
    utilisation : float
        Share of time that the server is busy.
    mean_wait_s, mean_sojourn_s : float
        From arrival to the start of service; from arrival to its end.
    mean_waiting, mean_in_system : float
        Time averages of the number waiting and of the number in the system (Little's law).
    """

    utilisation: float
    mean_wait_s: float
    mean_sojourn_s: float
    mean_waiting: float
    mean_in_system: float


def _means(arrival_rate: float, mean_service_s: float, mean_wait_s: float) -> SingleServer:
    sojourn_s = mean_wait_s + mean_service_s
    return SingleServer(
        arrival_rate * mean_service_s, mean_wait_s, sojourn_s, arrival_rate * mean_wait_s, arrival_rate * sojourn_s
    )


def mm1(arrival_rate: float, service_rate: float) -> SingleServer:
    """Return the means of the M/M/1 queue.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.

    Raises
    ------
    InputError
        Outside the valid range.
    """
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    utilisation = arrival_rate / service_rate
    stable(utilisation)
    return _means(arrival_rate, 1 / service_rate, utilisation / (service_rate - arrival_rate))


def mm1_sojourn_quantile(arrival_rate: float, service_rate: float, p: float) -> float:
    """Return the `p`-quantile (0 < p < 1) of the M/M/1 sojourn time in seconds; its distribution is exponential."""
    share("p", p)
    return -mm1(arrival_rate, service_rate).mean_sojourn_s * math.log1p(-p)


def mm1_wait_quantile(arrival_rate: float, service_rate: float, p: float) -> float:
    """Return the `p`-quantile (0 < p < 1) of the M/M/1 wait in seconds; 0 if a share of at least p does not wait."""
    share("p", p)
    found = mm1(arrival_rate, service_rate)
    return max(0.0, found.mean_sojourn_s * math.log(found.utilisation / (1 - p)))


def mg1(arrival_rate: float, mean_service_s: float, second_moment_s2: float) -> SingleServer:
    """Return the means of the M/G/1 queue (Pollaczek-Khinchine).

    Parameters
    ----------
    arrival_rate : float
        Per second.
    mean_service_s, second_moment_s2 : float
        E[S] in seconds and E[S²] in seconds squared; E[S²] >= E[S]².

    Raises
    ------
    InputError
        Outside the valid range, for example if arrival_rate x mean_service_s >= 1.
    """
    positive("arrival_rate", arrival_rate)
    positive("mean_service_s", mean_service_s)
    at_least("second_moment_s2", second_moment_s2, mean_service_s**2 * (1 - 1e-12))
    utilisation = arrival_rate * mean_service_s
    stable(utilisation)
    return _means(arrival_rate, mean_service_s, arrival_rate * second_moment_s2 / (2 * (1 - utilisation)))


def mg1_wait_variance(
    arrival_rate: float, mean_service_s: float, second_moment_s2: float, third_moment_s3: float
) -> float:
    """Return the variance of the M/G/1 wait in seconds squared (Takács).

    Parameters
    ----------
    arrival_rate, mean_service_s, second_moment_s2 : float
        As for `mg1`.
    third_moment_s3 : float
        E[S³] in seconds cubed.
    """
    positive("third_moment_s3", third_moment_s3)
    wait_s = mg1(arrival_rate, mean_service_s, second_moment_s2).mean_wait_s
    return wait_s**2 + arrival_rate * third_moment_s3 / (3 * (1 - arrival_rate * mean_service_s))


def md1(arrival_rate: float, service_s: float) -> SingleServer:
    """Return the means of the M/D/1 queue: every service takes `service_s` seconds."""
    return mg1(arrival_rate, service_s, service_s**2)


def md1_wait_cdf(arrival_rate: float, service_s: float, t_s: float) -> float:
    """Return P(wait <= t) in the M/D/1 queue.

    Erlang's alternating series loses all digits for large t. This formula for the same function has positive terms only
    (Franx 2001, A simple solution for the M/D/c waiting time distribution). Let kD be the first multiple of the service
    time D above t. A customer waits at most t exactly if, for some j, it finds at most k - 1 - j customers waiting and
    there are j arrivals in the remaining time kD - t.
    """
    positive("arrival_rate", arrival_rate)
    positive("service_s", service_s)
    stable(arrival_rate * service_s)
    if t_s < 0:
        return 0.0
    k = math.floor(t_s / service_s) + 1
    rest = arrival_rate * (k * service_s - t_s)
    in_system = _md1_in_system(arrival_rate * service_s, k)
    waiting_at_most = np.cumsum(in_system)[1:]  # at most j waiting means at most j + 1 in the system
    j = np.arange(k)
    log_poisson = -rest + j * math.log(rest) - np.array([math.lgamma(i + 1) for i in j])
    return float(np.sum(waiting_at_most[::-1] * np.exp(log_poisson)))


def md1_wait_quantile(arrival_rate: float, service_s: float, p: float) -> float:
    """Return the `p`-quantile (0 < p < 1) of the M/D/1 wait in seconds, by root finding on `md1_wait_cdf`."""
    share("p", p)
    if md1_wait_cdf(arrival_rate, service_s, 0.0) >= p:
        return 0.0
    high_s = service_s
    while md1_wait_cdf(arrival_rate, service_s, high_s) < p:
        high_s *= 2
    return float(
        scipy.optimize.brentq(lambda t_s: md1_wait_cdf(arrival_rate, service_s, t_s) - p, 0, high_s, xtol=1e-12)
    )


def _md1_in_system(utilisation: float, most: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return P(n in system) for n = 0 .. most, by the recursion of the embedded chain (all terms positive)."""
    n = np.arange(most + 1)
    log_arrivals = -utilisation + n * math.log(utilisation) - np.array([math.lgamma(i + 1) for i in n])
    more_than = np.clip(1 - np.cumsum(np.exp(log_arrivals)), 0, None)
    chance = np.zeros(most + 1)
    chance[0] = 1 - utilisation
    for i in range(1, most + 1):
        # Balance across the cut between i-1 and i: the rate up from 0..i-1 equals the rate down from i.
        up = chance[0] * more_than[i - 1] + np.dot(chance[1:i], more_than[i - 1 : 0 : -1])
        chance[i] = up / math.exp(-utilisation)
    return chance


def kingman_bound(
    arrival_rate: float, mean_service_s: float, gap_variance_s2: float, service_variance_s2: float
) -> float:
    """Return an upper bound of the mean wait in GI/GI/1 in seconds (Kingman 1962); the bound always holds.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Their product, the utilisation, is > 0 and < 1.
    gap_variance_s2, service_variance_s2 : float
        Variances of the gaps between arrivals and of the service times, in seconds squared.
    """
    utilisation = _general(arrival_rate, mean_service_s, gap_variance_s2, service_variance_s2)
    return arrival_rate * (gap_variance_s2 + service_variance_s2) / (2 * (1 - utilisation))


def kingman_approximation(arrival_rate: float, mean_service_s: float, gap_scv: float, service_scv: float) -> float:
    """Return the heavy-traffic approximation of the mean wait in GI/GI/1 in seconds, also called VUT.

    It is not a bound: with bursty arrivals the wait can be longer. It is exact for M/G/1 and in the limit of a
    utilisation of 1.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Their product, the utilisation, is > 0 and < 1.
    gap_scv, service_scv : float
        Squared coefficients of variation (variance over squared mean), >= 0.
    """
    utilisation = _general(arrival_rate, mean_service_s, gap_scv, service_scv)
    return utilisation / (1 - utilisation) * (gap_scv + service_scv) / 2 * mean_service_s


def _general(arrival_rate: float, mean_service_s: float, *variability: float) -> float:
    positive("arrival_rate", arrival_rate)
    positive("mean_service_s", mean_service_s)
    for value in variability:
        if value < 0:
            raise InputError(f"a variance or squared coefficient of variation of {value:g}: must be >= 0")
    stable(arrival_rate * mean_service_s)
    return arrival_rate * mean_service_s
