"""Several identical servers, and queues that lose customers: Erlang B and C, M/M/c, M/M/1/K.

Sources: Erlang 1917; Gross, Shortle, Thompson and Harris, Fundamentals of Queueing Theory (2008), chapters 2 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from simqueue.errors import InputError
from simqueue.theory.domain import at_least, at_most, positive, share, stable

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
    at_least("servers", servers, 1)
    at_most("servers", servers, MOST_SERVERS)
    positive("offered_load", offered_load)
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = offered_load * blocked / (k + offered_load * blocked)
    return blocked


def erlang_c(servers: int, offered_load: float) -> float:
    """Return the probability of waiting in M/M/c; `offered_load` is below the number of servers."""
    stable(offered_load / servers if servers else math.inf)
    blocked = erlang_b(servers, offered_load)
    return servers * blocked / (servers - offered_load * (1 - blocked))


def mmc(servers: int, arrival_rate: float, service_rate: float) -> ManyServers:
    """Return the steady state of M/M/c.

    Parameters
    ----------
    servers : int
    arrival_rate, service_rate : float
        Per second, service_rate per server; arrival_rate < servers x service_rate.
    """
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    waits = erlang_c(servers, arrival_rate / service_rate)
    wait_s = waits / (servers * service_rate - arrival_rate)
    return ManyServers(
        utilisation=arrival_rate / (servers * service_rate),
        wait_probability=waits,
        mean_wait_s=wait_s,
        mean_sojourn_s=wait_s + 1 / service_rate,
        mean_waiting=arrival_rate * wait_s,
    )


def mmc_wait_quantile(servers: int, arrival_rate: float, service_rate: float, p: float) -> float:
    """Return the `p`-quantile (0 < p < 1) of the wait in M/M/c in seconds; 0 if at least a share p does not wait."""
    share("p", p)
    waits = mmc(servers, arrival_rate, service_rate).wait_probability
    return max(0.0, math.log(waits / (1 - p)) / (servers * service_rate - arrival_rate))


def allen_cunneen_approximation(
    servers: int, arrival_rate: float, mean_service_s: float, gap_scv: float, service_scv: float
) -> float:
    """Return the Allen-Cunneen approximation of the mean wait in GI/G/c in seconds; accurate to about 10-15 %.

    Parameters
    ----------
    servers, arrival_rate, mean_service_s
        As for `mmc`, with the mean service time in seconds instead of a rate.
    gap_scv, service_scv : float
        Squared coefficients of variation, >= 0.
    """
    positive("mean_service_s", mean_service_s)
    at_least("gap_scv", gap_scv, 0)
    at_least("service_scv", service_scv, 0)
    return mmc(servers, arrival_rate, 1 / mean_service_s).mean_wait_s * (gap_scv + service_scv) / 2


def mm1k(arrival_rate: float, service_rate: float, room: int) -> FiniteQueue:
    """Return the steady state of M/M/1/K; it exists at every arrival rate.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Per second.
    room : int
        K, the largest number of customers in the system, including the one in service; from 1 to 1,000,000.
    """
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    if room < 1:
        raise InputError(f"room = {room}: must be at least 1")
    at_most("room", room, MOST_SERVERS)
    ratio = arrival_rate / service_rate
    # The weights are relative to the likelier end, so that none overflows.
    weights = [ratio**n if ratio <= 1 else ratio ** (n - room) for n in range(room + 1)]
    total = math.fsum(weights)
    loss = weights[room] / total
    inside = math.fsum(n * weight for n, weight in enumerate(weights)) / total
    throughput = arrival_rate * (1 - loss)
    return FiniteQueue(loss, inside, inside / throughput, throughput)
