"""What routing does to waits: c servers, each with a queue of its own, or one queue for all.

Poisson arrivals are split at random, in turn, or by the queues. The chain of the shortest of d queues among c is in
`choices`, and one queue for c servers in `many_servers` (`mmc`, exact; `allen_cunneen_approximation` with gap_scv = 1,
a two-moment approximation of M/G/c).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from simqueue.errors import InputError
from simqueue.theory.domain import MOST, moment, positive, product, ratio, unused, whole
from simqueue.theory.many_servers import MOST_SERVERS, mmc
from simqueue.theory.renewal import gamma_m1_at_arrivals

_MOST_LENGTH = 10**9
_LEAST_WAITS = 1e-290
"""Probability below which its digits are lost."""


@dataclass(frozen=True, slots=True)
class Routed:
    """Steady state of servers with a queue each.

    Attributes
    ----------
    utilisation : float
        Utilisation of each server.
    wait_probability : float
        Share of customers that wait.
    mean_wait_s, mean_sojourn_s : float
    """

    utilisation: float
    wait_probability: float
    mean_wait_s: float
    mean_sojourn_s: float


def random_split(servers: int, arrival_rate: float, mean_service_s: float, second_moment_s2: float) -> Routed:
    """Return the steady state of c servers that customers choose at random: c times M/G/1 (Pollaczek-Khinchine).

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    arrival_rate, mean_service_s : float
        Per second for all servers together, and E[S] in seconds; their product is > 0 and below the number of servers.
    second_moment_s2 : float
        E[S²] in seconds squared, at least the square of mean_service_s. If it is infinite, so is the mean wait.
    """
    servers = whole("servers", servers, MOST_SERVERS)
    positive("arrival_rate", arrival_rate)
    positive("mean_service_s", mean_service_s)
    load = product(arrival_rate, mean_service_s)
    idle_servers = unused(load, servers)
    moment("second_moment_s2", second_moment_s2, mean_service_s**2, "the square of mean_service_s")
    busy, wait_s = float(load / servers), arrival_rate * second_moment_s2 / (2 * idle_servers)
    return Routed(busy, busy, wait_s, wait_s + mean_service_s)


def round_robin(servers: int, arrival_rate: float, service_rate: float) -> Routed:
    """Return the steady state of c exponential servers that customers join in turn: c times E_c/M/1.

    Each server gets every c-th arrival of a Poisson process, so its gaps are Erlang distributed with c stages
    (Kleinrock, Queueing Systems I, 1975, chapter 6).

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    arrival_rate, service_rate : float
        Per second, arrival_rate for all servers together, service_rate per server;
        0 < arrival_rate < servers x service_rate.
    """
    servers = whole("servers", servers, MOST_SERVERS)
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    load = ratio(arrival_rate, service_rate) / servers
    unused(load)
    found = gamma_m1_at_arrivals(load, servers)
    return Routed(float(load), found.busy, found.busy / (service_rate * found.idle), 1 / (service_rate * found.idle))


def supermarket(choices: int, arrival_rate: float, service_rate: float) -> Routed:
    """Return the limit of many exponential servers where customers join the shortest of d queues drawn at random.

    It is that of a number of servers without bound. Sources: Vvedenskaya, Dobrushin and Karpelevich 1996; Mitzenmacher
    1996, The power of two choices in randomized load balancing.

    Parameters
    ----------
    choices : int
        d, the number of queues that are drawn for each customer; from 1 to 1,000,000.
    arrival_rate, service_rate : float
        Per second and server; 0 < arrival_rate < service_rate.
    """
    one = _supermarket(choices, arrival_rate, service_rate)
    alone = one.choices == 1
    wait_s = one.busy / (service_rate * one.idle) if alone else one.mean_waiting() / arrival_rate
    return Routed(one.busy, math.exp(one.choices * one.log_busy), wait_s, wait_s + 1 / service_rate)


def supermarket_tail(choices: int, arrival_rate: float, service_rate: float, length: int) -> float:
    """Return the share of many exponential servers with at least `length` customers, if they join the shortest of d.

    It is ρ^((d^k - 1) / (d - 1)) for a length of k; see `supermarket`.

    Parameters
    ----------
    choices : int
        d, the number of queues that are drawn for each customer; from 1 to 1,000,000.
    arrival_rate, service_rate : float
        Per second and server; 0 < arrival_rate < service_rate.
    length : int
        k, waiting or in service; from 1 to 1,000,000,000.
    """
    return _supermarket(choices, arrival_rate, service_rate).tail(whole("length", length, _MOST_LENGTH))


def separate_over_central_wait(servers: int, arrival_rate: float, service_rate: float) -> float:
    """Return the mean wait of c M/M/1 with a queue each over that of M/M/c: what one queue for all saves.

    It is the offered load over Erlang's C.

    Parameters
    ----------
    servers : int
        From 1 to 1,000,000.
    arrival_rate, service_rate : float
        Per second, arrival_rate for all servers together, service_rate per server;
        0 < arrival_rate < servers x service_rate.
    """
    waits = mmc(servers, arrival_rate, service_rate).wait_probability
    if waits < _LEAST_WAITS:
        raise InputError(f"servers = {servers:,}: must be fewer, or the load higher; hardly any customer would wait")
    return arrival_rate / service_rate / waits


@dataclass(frozen=True, slots=True)
class _Supermarket:
    """d, and ρ, log ρ and 1 - ρ with all their digits."""

    choices: int
    busy: float
    log_busy: float
    idle: float

    def tail(self, length: int) -> float:
        """Return the share of servers with at least this many customers."""
        return math.exp(self.log_busy * _exponent(self.choices, length))

    def mean_waiting(self) -> float:
        """Return the mean number waiting at a server: the sum of the tails from 2 on, which fall ever faster."""
        total, length = 0.0, 2
        while (term := self.tail(length)) > total * 1e-18:
            total += term
            length += 1
        return total


def _supermarket(choices: int, arrival_rate: float, service_rate: float) -> _Supermarket:
    choices = whole("choices", choices, MOST_SERVERS)
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    load = ratio(arrival_rate, service_rate)
    idle, busy = unused(load), float(load)
    return _Supermarket(choices, busy, math.log1p(-idle) if idle < 0.5 else math.log(busy), idle)


def _exponent(choices: int, length: int) -> float:
    """Return 1 + d + ... + d^(k-1), or a number at which the tail is 0."""
    if choices == 1:
        return length
    if length * math.log(choices) > math.log(MOST) * 2:
        return MOST**2
    return float((choices**length - 1) // (choices - 1))
