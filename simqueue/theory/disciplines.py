"""M/G/1 with service orders other than first come, first served.

Service times are continuous distributions, such as the frozen ones of `scipy.stats` (any object with ``pdf``, ``sf``,
``isf`` and ``mean``), in seconds. Sources: Cobham 1954 (priorities); Phipps 1956 (shortest job first); Schrage and
Miller 1966 (SRPT); Harchol-Balter, Performance Modeling and Design of Computer Systems (2013), chapters 30 to 33
(all).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.theory.domain import at_least, moment, positive, product, unused


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
        moment("second_moment_s2", second, mean_s**2, "the square of mean_service_s")
    loads = [product(rate, mean_s) for rate, mean_s in zip(arrival_rates, mean_services_s, strict=True)]
    left = [unused(sum(loads[:n], Fraction(0)), grows_with="arrival_rates") for n in range(len(loads) + 1)]
    residual_s = sum(rate * second for rate, second in zip(arrival_rates, second_moments_s2, strict=True)) / 2
    return tuple(residual_s / (before * after) for before, after in pairwise(left))


def sjf_mean_sojourn(arrival_rate: float, service: ServiceDistribution) -> float:
    """Return the mean sojourn time in seconds of non-preemptive shortest job first (Phipps).

    Parameters
    ----------
    arrival_rate : float
        Poisson, per second; arrival_rate x E[S] is > 0 and < 1.
    service : distribution
        If P(S > x) falls like a power of 2 or less, E[S²] is infinite, and so is the mean sojourn time. The power must
        be above 1.05.
    """
    sizes = _job_sizes(arrival_rate, service)
    residual_s = arrival_rate * sizes.half_second_moment
    if residual_s == math.inf:
        return math.inf
    return sizes.integral(sizes.density * residual_s / sizes.idle_from(sizes.x) ** 2) + service.mean()


def srpt_mean_sojourn(arrival_rate: float, service: ServiceDistribution) -> float:
    """Return the mean sojourn time in seconds of shortest remaining processing time (Schrage and Miller).

    It is finite also where E[S²] is infinite. Parameters as for `sjf_mean_sojourn`.
    """
    sizes = _job_sizes(arrival_rate, service)
    idle = sizes.idle_from(sizes.x)
    waiting_s = arrival_rate * sizes.cut_second_moment / (2 * idle**2)
    residence_s = sizes.integral(sizes.tail / idle) + sizes.mean_beyond / sizes.idle
    return sizes.integral(sizes.density * waiting_s) + residence_s


def fb_mean_sojourn(arrival_rate: float, service: ServiceDistribution) -> float:
    """Return the mean sojourn time in seconds of foreground-background (least attained service first).

    Multi-level feedback queues approximate it. It is finite also where E[S²] is infinite. Parameters as for
    `sjf_mean_sojourn`.
    """
    sizes = _job_sizes(arrival_rate, service)
    idle = sizes.idle_from(0)
    delay_s = arrival_rate * sizes.cut_second_moment / (2 * idle**2)
    longest_s = (sizes.mean_beyond + sizes.end * sizes.tail_at_end) / sizes.idle
    return sizes.integral(sizes.density * (sizes.x / idle + delay_s)) + longest_s


def ps_mean_sojourn(arrival_rate: float, mean_service_s: float, service_s: float | None = None) -> float:
    """Return the mean sojourn time in seconds under processor sharing; only the mean service time matters.

    Parameters
    ----------
    arrival_rate, mean_service_s : float
        Per second and in seconds; their product is > 0 and < 1.
    service_s : float, optional
        Service time of the job in question, at least 0; by default the mean.
    """
    positive("arrival_rate", arrival_rate)
    positive("mean_service_s", mean_service_s)
    idle = unused(product(arrival_rate, mean_service_s))
    service_s = mean_service_s if service_s is None else service_s
    at_least("service_s", service_s, 0)
    return service_s / idle


_NODES = 16
_PANELS = np.concatenate(
    [np.linspace(1, 0.5, 33)[:-1], np.geomspace(0.5, 1e-18, 161), np.geomspace(1e-19, 1e-300, 282)]
)
"""P(S > x) at the sizes x that separate the panels of the integration."""
_LARGEST = 1e100
"""Size up to which is integrated, so that its square does not overflow. Beyond it, tails are powers."""
_LEAST_POWER = 1.05
"""Below this power of the tail, sizes beyond the last panel still matter."""
_SAME_POWER = 1e-9
_MISSED = 0.01
"""Largest relative error of the integrals of the density and of P(S > x) at which they count as right."""


@dataclass(frozen=True)
class _JobSizes:
    """Job sizes at the Gauss-Legendre nodes of panels over the whole distribution; arrays of shape (panels, nodes).

    Attributes
    ----------
    x, density, tail : array
        A size, the density there, and P(S > x).
    idle : float
        1 - λ E[S].
    end, tail_at_end, power : float
        The end X of the last panel, P(S > X), and the power with which P(S > x) falls there.
    """

    half_widths: NDArray[Any]
    x: NDArray[Any]
    density: NDArray[Any]
    tail: NDArray[Any]
    arrival_rate: float
    idle: float
    end: float
    tail_at_end: float
    power: float

    @property
    def mean_beyond(self) -> float:
        """Return the integral of P(S > x) from the end of the last panel."""
        return self.end * self.tail_at_end / (self.power - 1)

    @property
    def half_second_moment(self) -> float:
        """Return E[S²] / 2, the integral of x P(S > x)."""
        if self.power <= 2 + _SAME_POWER:
            return math.inf
        return self.integral(self.x * self.tail) + self.end**2 * self.tail_at_end / (self.power - 2)

    def idle_from(self, least: Any) -> NDArray[Any]:
        """Return 1 - ρ + λ (∫ P(S > t) dt from x + `least` P(S > x)).

        With 0 it is the share of time without work of jobs cut at x, and with x that without jobs up to x. Adding from
        above keeps the digits that 1 minus a load close to 1 would lose.
        """
        whole = (self.tail @ _rule()[1]) * self.half_widths
        after = np.append(np.cumsum(whole[:0:-1])[::-1], 0.0) + self.mean_beyond
        above = after[:, None] + (whole[:, None] - (self.tail @ _rule()[2].T) * self.half_widths[:, None])
        return np.asarray(self.idle + self.arrival_rate * (above + least * self.tail))

    @property
    def cut_second_moment(self) -> NDArray[Any]:
        """Return E[min(S, x)²] = 2 ∫ t P(S > t) dt from 0 to x."""
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
    mean_s = float(service.mean())
    positive("service: its mean", mean_s)
    idle = unused(product(arrival_rate, mean_s))
    edges, power, tail_at_end = _edges(service)
    half_widths = np.diff(edges) / 2
    x = edges[:-1, None] + half_widths[:, None] * (1 + _rule()[0])
    with np.errstate(all="ignore"):
        density, tail, at_edges = np.asarray(service.pdf(x)), np.asarray(service.sf(x)), np.asarray(service.sf(edges))
    # A density that is infinite at 0 cannot be integrated there, but the probability of each panel is known.
    found, known = (density @ _rule()[1]) * half_widths, -np.diff(at_edges)
    scaled = density * np.divide(known, found, out=np.ones_like(found), where=found > 0)[:, None]
    sizes = _JobSizes(half_widths, x, scaled, tail, arrival_rate, idle, float(edges[-1]), tail_at_end, power)
    found_mean_s = sizes.integral(tail) + sizes.mean_beyond
    if not (abs(found.sum() - 1) <= _MISSED and abs(found_mean_s / mean_s - 1) <= _MISSED):
        raise InputError("service: its density, P(S > x) and mean do not belong together; it must be continuous")
    return sizes


def _edges(service: ServiceDistribution) -> tuple[NDArray[Any], float, float]:
    """Return the ends of the panels, the power of the tail at the last one, and the probability beyond it."""
    edges = np.asarray(service.isf(_PANELS), dtype=np.float64)
    edges = edges[(edges > 0) & (edges <= _LARGEST)]  # not NaN, which some distributions have for tiny probabilities
    edges = np.concatenate([[0.0], np.unique(edges)])
    with np.errstate(all="ignore"):
        tails = np.asarray(service.sf(edges))
    last = np.flatnonzero(tails > 0)[-2:]
    if tails[-1] <= 0:
        return edges, math.inf, 0.0
    power = float(-np.diff(np.log(tails[last]))[0] / np.diff(np.log(edges[last]))[0])
    if power < _LEAST_POWER:
        raise InputError(
            f"service: P(S > x) falls like x^-{power:.4g} for large x: the power must be at least {_LEAST_POWER:g}"
        )
    return edges, power, float(tails[-1])
