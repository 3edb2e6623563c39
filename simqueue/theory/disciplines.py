"""M/G/1 under other orders than first come first served.

Service laws are continuous distributions frozen by `scipy.stats` (any object with ``pdf``, ``sf`` and ``mean``), times
in seconds. Sources: Cobham 1954 (priorities); Phipps 1956 (shortest job first); Schrage and Miller 1966 (SRPT);
Harchol-Balter, Performance Modeling and Design of Computer Systems (2013), chapters 30 to 33, for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from simqueue.errors import InputError
from simqueue.theory.domain import at_least, positive, stable


class ServiceLaw(Protocol):
    """A continuous law of service times, such as ``scipy.stats.expon(scale=0.1)``."""

    def pdf(self, x: float, /) -> float:
        """Return the density at x."""

    def sf(self, x: float, /) -> float:
        """Return P(S > x)."""

    def mean(self) -> float:
        """Return E[S]."""


def priority_waits(
    arrival_rates: Sequence[float], mean_services_s: Sequence[float], second_moments_s2: Sequence[float]
) -> tuple[float, ...]:
    """Return the mean wait of each class under non-preemptive priority, the most urgent class first (Cobham).

    Parameters
    ----------
    arrival_rates, mean_services_s, second_moments_s2 : sequences of float, one entry a class
        Poisson rate per second, E[S] in seconds and E[S²] in seconds squared; summed utilisation < 1.
    """
    if not len(arrival_rates) == len(mean_services_s) == len(second_moments_s2) > 0:
        raise InputError("arrival_rates, mean_services_s, second_moments_s2: need one entry a class, at least one")
    for rate, mean_s, second in zip(arrival_rates, mean_services_s, second_moments_s2, strict=True):
        positive("arrival_rate", rate)
        positive("mean_service_s", mean_s)
        at_least("second_moment_s2", second, mean_s**2 * (1 - 1e-12))
    loads = [rate * mean_s for rate, mean_s in zip(arrival_rates, mean_services_s, strict=True)]
    stable(sum(loads))
    residual_s = sum(rate * second for rate, second in zip(arrival_rates, second_moments_s2, strict=True)) / 2
    waits, before = [], 0.0
    for load in loads:
        waits.append(residual_s / ((1 - before) * (1 - before - load)))
        before += load
    return tuple(waits)


def sjf_mean_sojourn(arrival_rate: float, service: ServiceLaw) -> float:
    """Return the mean sojourn time in seconds of non-preemptive shortest job first (Phipps)."""
    stable(arrival_rate * service.mean())
    residual_s = arrival_rate * 2 * _integral(lambda t: t * service.sf(t)) / 2
    wait_s = _integral(lambda x: service.pdf(x) * residual_s / (1 - _load_below(arrival_rate, service, x)) ** 2)
    return wait_s + service.mean()


def srpt_mean_sojourn(arrival_rate: float, service: ServiceLaw) -> float:
    """Return the mean sojourn time in seconds of shortest remaining processing time (Schrage and Miller)."""
    stable(arrival_rate * service.mean())

    def waiting_s(x: float) -> float:
        # E[min(S, x)²] = 2 ∫ t P(S > t) dt up to x
        second = 2 * _integral(lambda t: t * service.sf(t), x)
        return service.pdf(x) * arrival_rate * second / (2 * (1 - _load_below(arrival_rate, service, x)) ** 2)

    residence_s = _integral(lambda t: service.sf(t) / (1 - _load_below(arrival_rate, service, t)))
    return _integral(waiting_s) + residence_s


def fb_mean_sojourn(arrival_rate: float, service: ServiceLaw) -> float:
    """Return the mean sojourn time in seconds of foreground-background (least attained service first).

    Multi-level feedback queues approximate it.
    """
    stable(arrival_rate * service.mean())

    def sojourn_s(x: float) -> float:
        load = arrival_rate * _integral(service.sf, x)
        second = 2 * _integral(lambda t: t * service.sf(t), x)
        return service.pdf(x) * (x / (1 - load) + arrival_rate * second / (2 * (1 - load) ** 2))

    return _integral(sojourn_s)


def ps_mean_sojourn(arrival_rate: float, mean_service_s: float, service_s: float | None = None) -> float:
    """Return the mean sojourn time in seconds under processor sharing, which no law but its mean changes.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Per second and in seconds; their product is > 0 and < 1.
    service_s : float, optional
        Of a job that needs this much service; by default of the average job.
    """
    positive("arrival_rate", arrival_rate)
    positive("mean_service_s", mean_service_s)
    stable(arrival_rate * mean_service_s)
    return (mean_service_s if service_s is None else service_s) / (1 - arrival_rate * mean_service_s)


def _load_below(arrival_rate: float, service: ServiceLaw, x: float) -> float:
    """Return the load of jobs up to size x: λ ∫ t dF(t) = λ (∫ P(S > t) dt - x P(S > x))."""
    return arrival_rate * (_integral(service.sf, x) - x * service.sf(x))


def _integral(f: Callable[[float], float], end: float = math.inf) -> float:
    from scipy.integrate import quad  # noqa: PLC0415 - scipy is slow to load and not always wanted

    return float(quad(f, 0, end, epsabs=1e-11, epsrel=1e-10, limit=200)[0])
