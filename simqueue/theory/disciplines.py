"""M/G/1 with service orders other than first come, first served.

Service times are continuous distributions, such as the frozen ones of `scipy.stats` (any object with ``pdf``, ``sf``,
``isf`` and ``mean``), in seconds. Sources: Cobham 1954 (priorities); Phipps 1956 (shortest job first); Schrage and
Miller 1966 (SRPT); Harchol-Balter, Performance Modeling and Design of Computer Systems (2013), chapters 30 to 33
(all).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.theory.domain import at_least, positive, stable


class ServiceDistribution(Protocol):
    """A continuous distribution of service times, such as ``scipy.stats.expon(scale=0.1)``, evaluated on arrays."""

    def pdf(self, x: Any, /) -> Any:
        """Return the density at x."""

    def sf(self, x: Any, /) -> Any:
        """Return P(S > x)."""

    def isf(self, q: Any, /) -> Any:
        """Return the x with P(S > x) = q."""

    def mean(self) -> float:
        """Return E[S]."""


def priority_waits(
    arrival_rates: Sequence[float], mean_services_s: Sequence[float], second_moments_s2: Sequence[float]
) -> tuple[float, ...]:
    """Return the mean wait of each class under non-preemptive priority, in seconds, most urgent class first (Cobham).

    Parameters
    ----------
    arrival_rates, mean_services_s, second_moments_s2 : sequences of float, one entry per class
        Poisson rate per second, E[S] in seconds and E[S²] in seconds squared; the sum of the utilisations must be < 1.
    """
    if not len(arrival_rates) == len(mean_services_s) == len(second_moments_s2) > 0:
        raise InputError("arrival_rates, mean_services_s, second_moments_s2: need one entry per class, at least one")
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


def sjf_mean_sojourn(arrival_rate: float, service: ServiceDistribution) -> float:
    """Return the mean sojourn time in seconds of non-preemptive shortest job first (Phipps)."""
    sizes = _job_sizes(arrival_rate, service)
    residual_s = arrival_rate * sizes.integral(sizes.x * sizes.tail)
    return sizes.integral(sizes.density * residual_s / (1 - sizes.load_below) ** 2) + service.mean()


def srpt_mean_sojourn(arrival_rate: float, service: ServiceDistribution) -> float:
    """Return the mean sojourn time in seconds of shortest remaining processing time (Schrage and Miller)."""
    sizes = _job_sizes(arrival_rate, service)
    waiting_s = arrival_rate * sizes.cut_second_moment / (2 * (1 - sizes.load_below) ** 2)
    residence_s = sizes.integral(sizes.tail / (1 - sizes.load_below))
    return sizes.integral(sizes.density * waiting_s) + residence_s


def fb_mean_sojourn(arrival_rate: float, service: ServiceDistribution) -> float:
    """Return the mean sojourn time in seconds of foreground-background (least attained service first).

    Multi-level feedback queues approximate it.
    """
    sizes = _job_sizes(arrival_rate, service)
    load = arrival_rate * sizes.running(sizes.tail)
    delay_s = arrival_rate * sizes.cut_second_moment / (2 * (1 - load) ** 2)
    return sizes.integral(sizes.density * (sizes.x / (1 - load) + delay_s))


def ps_mean_sojourn(arrival_rate: float, mean_service_s: float, service_s: float | None = None) -> float:
    """Return the mean sojourn time in seconds under processor sharing; only the mean service time matters.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Per second and in seconds; their product is > 0 and < 1.
    service_s : float, optional
        Service time of the job in question; by default the mean.
    """
    positive("arrival_rate", arrival_rate)
    positive("mean_service_s", mean_service_s)
    stable(arrival_rate * mean_service_s)
    return (mean_service_s if service_s is None else service_s) / (1 - arrival_rate * mean_service_s)


_NODES = 16
_PANELS = np.concatenate([np.linspace(1, 0.5, 33)[:-1], np.geomspace(0.5, 1e-18, 161)])
"""P(S > x) at the sizes x that separate the panels of the integration."""


@dataclass(frozen=True)
class _JobSizes:
    """Job sizes at the Gauss-Legendre nodes of panels over the whole distribution; arrays of shape (panels, nodes).

    Attributes
    ----------
    x, density, tail : array
        A size, the density there, and P(S > x).
    load_below : array
        Load of jobs up to that size: λ (∫ P(S > t) dt from 0 to x, minus x P(S > x)).
    cut_second_moment : array
        E[min(S, x)²] = 2 ∫ t P(S > t) dt from 0 to x.
    """

    half_widths: NDArray[Any]
    x: NDArray[Any]
    density: NDArray[Any]
    tail: NDArray[Any]
    arrival_rate: float

    @property
    def load_below(self) -> NDArray[Any]:
        return np.asarray(self.arrival_rate * (self.running(self.tail) - self.x * self.tail))

    @property
    def cut_second_moment(self) -> NDArray[Any]:
        return 2 * self.running(self.x * self.tail)

    def integral(self, values: NDArray[Any]) -> float:
        return float(np.sum((values @ _rule()[1]) * self.half_widths))

    def running(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the integral of `values` from the smallest size up to each node."""
        _, weights, partial = _rule()
        whole = (values @ weights) * self.half_widths
        before = np.concatenate([[0.0], np.cumsum(whole)[:-1]])
        return np.asarray(before[:, None] + (values @ partial.T) * self.half_widths[:, None])


@cache
def _rule() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return Gauss-Legendre nodes on [-1, 1], their weights, and the matrix of integrals from -1 to each node."""
    nodes, weights = legendre.leggauss(_NODES)
    to_coefficients = np.linalg.inv(legendre.legvander(nodes, _NODES - 1))
    integrated = np.array([legendre.legval(nodes, legendre.legint(row, lbnd=-1)) for row in np.eye(_NODES)]).T
    return nodes, weights, integrated @ to_coefficients


def _job_sizes(arrival_rate: float, service: ServiceDistribution) -> _JobSizes:
    positive("arrival_rate", arrival_rate)
    stable(arrival_rate * service.mean())
    edges = np.asarray(service.isf(_PANELS), dtype=np.float64)
    edges = np.concatenate([[0.0], edges[edges > 0]])
    half_widths = np.diff(edges) / 2
    x = edges[:-1, None] + half_widths[:, None] * (1 + _rule()[0])
    return _JobSizes(half_widths, x, np.asarray(service.pdf(x)), np.asarray(service.sf(x)), arrival_rate)
