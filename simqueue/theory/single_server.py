"""One server, first come, first served: M/M/1, M/D/1, M/G/1 with Poisson arrivals; bounds for GI/GI/1.

Rates are per second and times in seconds, or in any other unit used throughout. The wait is the time before service,
and the sojourn is the wait plus the service. Source, unless another is named: Kleinrock, Queueing Systems I (1975),
chapters 3 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from simqueue.errors import InputError
from simqueue.theory.constant_service import constant_service
from simqueue.theory.domain import at_least, moment, positive, product, ratio, share, unused

_LATEST = 1e300
"""Seconds of which more make no difference: the probability of a longer wait is 0 in all digits."""


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
    unused(ratio(arrival_rate, service_rate))
    utilisation = arrival_rate / service_rate
    return _means(arrival_rate, 1 / service_rate, utilisation / (service_rate - arrival_rate))


def mm1_sojourn_quantile(arrival_rate: float, service_rate: float, p: float) -> float:
    """Return the `p`-quantile of the M/M/1 sojourn time in seconds; its distribution is exponential.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.
    p : float
        > 0 and < 1.
    """
    share("p", p)
    return -mm1(arrival_rate, service_rate).mean_sojourn_s * math.log1p(-p)


def mm1_wait_quantile(arrival_rate: float, service_rate: float, p: float) -> float:
    """Return the `p`-quantile of the M/M/1 wait in seconds; 0 if a share of at least p does not wait.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second; 0 < arrival_rate < service_rate.
    p : float
        > 0 and < 1.
    """
    share("p", p)
    found = mm1(arrival_rate, service_rate)
    return max(0.0, found.mean_sojourn_s * math.log(found.utilisation / (1 - p)))


def mg1(arrival_rate: float, mean_service_s: float, second_moment_s2: float) -> SingleServer:
    """Return the means of the M/G/1 queue (Pollaczek-Khinchine).

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Per second, and E[S] in seconds; their product is > 0 and < 1.
    second_moment_s2 : float
        E[S²] in seconds squared, at least the square of mean_service_s. If it is infinite, so is the mean wait.

    Raises
    ------
    InputError
        Outside the valid range, for example if arrival_rate x mean_service_s >= 1.
    """
    idle = _idle(arrival_rate, mean_service_s)
    moment("second_moment_s2", second_moment_s2, mean_service_s**2, "the square of mean_service_s")
    return _means(arrival_rate, mean_service_s, arrival_rate * second_moment_s2 / (2 * idle))


def mg1_wait_variance(
    arrival_rate: float, mean_service_s: float, second_moment_s2: float, third_moment_s3: float
) -> float:
    """Return the variance of the M/G/1 wait in seconds squared (Takács); infinite if a moment is.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Per second, and E[S] in seconds; their product is > 0 and < 1.
    second_moment_s2 : float
        E[S²] in seconds squared, at least the square of mean_service_s; it may be infinite.
    third_moment_s3 : float
        E[S³] in seconds cubed, at least E[S²]² / E[S]; it may be infinite.
    """
    wait_s = mg1(arrival_rate, mean_service_s, second_moment_s2).mean_wait_s
    least = second_moment_s2**2 / mean_service_s
    moment("third_moment_s3", third_moment_s3, least, "the square of second_moment_s2 over mean_service_s")
    return wait_s**2 + arrival_rate * third_moment_s3 / (3 * _idle(arrival_rate, mean_service_s))


def md1(arrival_rate: float, service_s: float) -> SingleServer:
    """Return the means of the M/D/1 queue.

    Parameters
    ----------
    arrival_rate, service_s : float
        Per second, and the seconds that every service takes; their product is > 0 and < 1.
    """
    positive("service_s", service_s)
    return mg1(arrival_rate, service_s, service_s**2)


def md1_wait_cdf(arrival_rate: float, service_s: float, t_s: float) -> float:
    """Return P(wait <= t) in the M/D/1 queue.

    Parameters
    ----------
    arrival_rate, service_s : float
        Per second and in seconds; their product is > 0 and < 1.
    t_s : float
        Any number of seconds, also infinity; 0 is the share of customers that do not wait.
    """
    queue = constant_service(arrival_rate, service_s)
    if t_s < 0:
        return 0.0
    if not t_s >= 0:
        raise InputError("t_s = nan: must be a number of seconds, or inf")
    return queue.wait_at_most(min(t_s, _LATEST) / service_s)


def md1_wait_quantile(arrival_rate: float, service_s: float, p: float) -> float:
    """Return the `p`-quantile of the M/D/1 wait in seconds; 0 if a share of at least p does not wait.

    Parameters
    ----------
    arrival_rate, service_s : float
        Per second and in seconds; their product is > 0 and < 1.
    p : float
        > 0 and < 1.
    """
    share("p", p)
    return service_s * constant_service(arrival_rate, service_s).wait_quantile(p)


def kingman_bound(
    arrival_rate: float, mean_service_s: float, gap_variance_s2: float, service_variance_s2: float
) -> float:
    """Return an upper bound of the mean wait in GI/GI/1 in seconds (Kingman 1962); the bound always holds.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Per second and in seconds; their product, the utilisation, is > 0 and < 1.
    gap_variance_s2, service_variance_s2 : float
        Variances of the gaps between arrivals and of the service times, in seconds squared, >= 0. If one is infinite,
        so is the bound.
    """
    idle = _idle(arrival_rate, mean_service_s)
    moment("gap_variance_s2", gap_variance_s2, 0, "a variance")
    moment("service_variance_s2", service_variance_s2, 0, "a variance")
    return arrival_rate * (gap_variance_s2 + service_variance_s2) / (2 * idle)


def kingman_approximation(arrival_rate: float, mean_service_s: float, gap_scv: float, service_scv: float) -> float:
    """Return the heavy-traffic approximation of the mean wait in GI/GI/1 in seconds, also called VUT.

    It is not a bound: with bursty arrivals the wait can be longer. It is exact for M/G/1 and in the limit of a
    utilisation of 1.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Per second and in seconds; their product, the utilisation, is > 0 and < 1.
    gap_scv, service_scv : float
        Squared coefficients of variation (variance over squared mean), >= 0.
    """
    at_least("gap_scv", gap_scv, 0)
    at_least("service_scv", service_scv, 0)
    idle = _idle(arrival_rate, mean_service_s)
    return arrival_rate * mean_service_s / idle * (gap_scv + service_scv) / 2 * mean_service_s


def _idle(arrival_rate: float, mean_service_s: float) -> float:
    positive("arrival_rate", arrival_rate)
    positive("mean_service_s", mean_service_s)
    return unused(product(arrival_rate, mean_service_s))
