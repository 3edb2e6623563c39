"""Several identical servers, and queues that lose customers: Erlang B and C, M/M/c, M/M/1/K.

Sources: Erlang 1917; Gross, Shortle, Thompson and Harris, Fundamentals of Queueing Theory (2008), chapters 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from simqueue.theory.domain import at_least, positive, product, ratio, share, unused, whole

MOST_SERVERS = 1_000_000
"""Largest number of servers, and of places in a queue: the recursions take a step for each."""


@dataclass(frozen=True, slots=True)
class ManyServers:
    """Steady state of M/M/c.

    Attributes
    ----------
    utilisation : float
        Utilisation of each server.
    wait_probability : float
        Share of customers that wait (Erlang C).
    mean_wait_s, mean_sojourn_s, mean_waiting : float
    """

    utilisation: float
    wait_probability: float
    mean_wait_s: float
    mean_sojourn_s: float
    mean_waiting: float


@dataclass(frozen=True, slots=True)
class FiniteQueue:
    """Steady state of M/M/1/K.

    Attributes
    ----------
    loss_probability : float
        Share of arrivals that are lost because the system is full.
    mean_in_system : float
    mean_sojourn_s : float
        Mean over the customers that are not lost.
    throughput : float
        Customers served per second.
    """

    loss_probability: float
    mean_in_system: float
    mean_sojourn_s: float
    throughput: float


def erlang_b(servers: int, offered_load: float) -> float:
    """Return the loss probability of M/G/c/c; only the mean of the service time matters.

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    offered_load : float
        Arrival rate times mean service time, in erlangs, > 0; it may exceed the number of servers.
    """
    servers = whole("servers", servers, MOST_SERVERS)
    positive("offered_load", offered_load)
    return _blocked(servers, offered_load)


def _blocked(servers: int, offered_load: float) -> float:
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = offered_load * blocked / (k + offered_load * blocked)
    return blocked


def erlang_c(servers: int, offered_load: float) -> float:
    """Return the probability of waiting in M/M/c.

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    offered_load : float
        Arrival rate times mean service time, in erlangs; > 0 and below the number of servers.
    """
    servers = whole("servers", servers, MOST_SERVERS)
    positive("offered_load", offered_load)
    return _waits(servers, offered_load, unused(Fraction(offered_load), servers, grows_with="offered_load"))


def mmc(servers: int, arrival_rate: float, service_rate: float) -> ManyServers:
    """Return the steady state of M/M/c.

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    arrival_rate, service_rate : float
        Per second, service_rate per server; 0 < arrival_rate < servers x service_rate.
    """
    positive("service_rate", service_rate)
    return _mmc(servers, arrival_rate, 1 / service_rate, lambda: ratio(arrival_rate, service_rate))


def mmc_wait_quantile(servers: int, arrival_rate: float, service_rate: float, p: float) -> float:
    """Return the `p`-quantile of the wait in M/M/c in seconds; 0 if at least a share p does not wait.

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    arrival_rate, service_rate : float
        Per second, service_rate per server; 0 < arrival_rate < servers x service_rate.
    p : float
        > 0 and < 1.
    """
    share("p", p)
    found = mmc(servers, arrival_rate, service_rate)
    if found.wait_probability <= 1 - p:
        return 0.0
    return math.log(found.wait_probability / (1 - p)) * (found.mean_wait_s / found.wait_probability)


def allen_cunneen_approximation(
    servers: int, arrival_rate: float, mean_service_s: float, gap_scv: float, service_scv: float
) -> float:
    """Return the Allen-Cunneen approximation of the mean wait in GI/G/c in seconds; accurate to about 10-15 %.

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    arrival_rate, mean_service_s : float
        Per second and in seconds; their product is > 0 and below the number of servers.
    gap_scv, service_scv : float
        Squared coefficients of variation, >= 0.
    """
    positive("mean_service_s", mean_service_s)
    at_least("gap_scv", gap_scv, 0)
    at_least("service_scv", service_scv, 0)
    exact = _mmc(servers, arrival_rate, mean_service_s, lambda: product(arrival_rate, mean_service_s))
    return exact.mean_wait_s * (gap_scv + service_scv) / 2


def _mmc(servers: int, arrival_rate: float, mean_service_s: float, load: Callable[[], Fraction]) -> ManyServers:
    servers = whole("servers", servers, MOST_SERVERS)
    positive("arrival_rate", arrival_rate)
    idle_servers = unused(load(), servers)
    waits = _waits(servers, float(load()), idle_servers)
    wait_s = waits * mean_service_s / idle_servers
    return ManyServers(
        utilisation=float(load() / servers),
        wait_probability=waits,
        mean_wait_s=wait_s,
        mean_sojourn_s=wait_s + mean_service_s,
        mean_waiting=arrival_rate * wait_s,
    )


def _waits(servers: int, offered_load: float, idle_servers: float) -> float:
    blocked = _blocked(servers, offered_load)
    return servers * blocked / (idle_servers + offered_load * blocked)


def mm1k(arrival_rate: float, service_rate: float, room: int) -> FiniteQueue:
    """Return the steady state of M/M/1/K; it exists at every arrival rate.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second, > 0.
    room : int
        K, the largest number of customers in the system, including the one in service; from 1 to 1,000,000.
    """
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    room = whole("room", room, MOST_SERVERS)
    offered = arrival_rate / service_rate
    n = np.arange(room + 1.0)
    # The weights are relative to the likelier end, so that none overflows.
    with np.errstate(under="ignore"):
        weights = offered**n if offered <= 1 else offered ** (n - room)
    total = weights.sum()
    inside = float(n @ weights / total)
    throughput = float(service_rate * weights[1:].sum() / total)
    return FiniteQueue(float(weights[room] / total), inside, inside / throughput, throughput)
