"""The shortest of d queues among c servers with exponential service: a Markov chain, solved numerically.

A customer joins the shortest of d different queues that are drawn at random; with d = c it joins the shortest of all.
The chain is that of the queue lengths in order. It is cut where the longest and the shortest queue differ by more than
a bound: then a customer of the longest one leaves instead. This is the shortest queue with threshold jockeying, whose
means converge geometrically as the bound grows (Adan, Wessels and Zijm 1993, Matrix-geometric analysis of the shortest
queue problem with threshold jockeying). While all servers are busy, the number in the system is that of M/M/1, so the
levels to be solved are finite at every load below 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.theory.domain import positive, ratio, unused, whole

MOST_CHOICES = 1_000_000
_MOST_SHAPES = 4000
_MOST_STATES = 220
"""Bounds of what is solved in a second: shapes of queues, and those with the same number in the system."""
_ENOUGH = 1e-11
"""Relative error of the mean wait at which the bound of the difference need not grow."""
_ACCEPTED = 1e-3
_SAME = 1e-13
_TINY = 1e-300
_LEAST_BOUNDS, _MANY_BOUNDS = 3, 16
_MOST_ROUNDS = 400

Shape = tuple[int, ...]
"""What each queue has more than the shortest, longest first."""
Matrix = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Choosing:
    """Steady state of c servers with a queue each, where a customer joins the shortest of d queues.

    Attributes
    ----------
    utilisation : float
        Utilisation of each server.
    wait_probability : float
        Share of customers that wait.
    mean_wait_s, mean_sojourn_s : float
    relative_error : float
        Estimated error of the mean wait, from the chain's cut.
    """

    utilisation: float
    wait_probability: float
    mean_wait_s: float
    mean_sojourn_s: float
    relative_error: float


def shortest_queue(servers: int, arrival_rate: float, service_rate: float) -> Choosing:
    """Return the steady state of c exponential servers where customers join the shortest queue, numerically.

    Parameters
    ----------
    servers : int
        From 1; up to about 30 can be solved, depending on the load.
    arrival_rate, service_rate : float
        Per second, service_rate per server; 0 < arrival_rate < servers x service_rate.

    Raises
    ------
    InputError
        Outside the valid range, or if the chain is too large.
    """
    return shortest_of_drawn_queues(servers, servers, arrival_rate, service_rate)


def shortest_of_drawn_queues(servers: int, choices: int, arrival_rate: float, service_rate: float) -> Choosing:
    """Return the steady state of c exponential servers where customers join the shortest of d queues, numerically.

    The d queues are drawn at random for each customer. The error of the mean wait is below 0.1 %, and mostly 1e-10.

    Parameters
    ----------
    servers : int
        From 1; with two choices, up to about 8 can be solved. For many servers see `supermarket`.
    choices : int
        Number of different queues that are drawn for each customer, from 1 to the number of servers.
    arrival_rate, service_rate : float
        Per second, service_rate per server; 0 < arrival_rate < servers x service_rate.

    Raises
    ------
    InputError
        Outside the valid range, or if the chain is too large.
    """
    servers = whole("servers", servers, MOST_CHOICES)
    choices = whole("choices", choices, servers)
    positive("arrival_rate", arrival_rate)
    positive("service_rate", service_rate)
    load = ratio(arrival_rate, service_rate)
    idle_servers = unused(load, servers)
    if servers == 1 or choices == 1:
        return _alone(float(load / servers), idle_servers / servers, service_rate)
    found = _converged(servers, choices, float(load), idle_servers)
    mean_wait_s = found.waiting / arrival_rate
    return Choosing(float(load / servers), found.waits, mean_wait_s, mean_wait_s + 1 / service_rate, found.error)


def _alone(busy: float, idle: float, service_rate: float) -> Choosing:
    """Return M/M/1 at each server."""
    return Choosing(busy, busy, busy / (service_rate * idle), 1 / (service_rate * idle), 0.0)


class _Found(NamedTuple):
    """Probability of waiting, mean number waiting, and the relative error of this."""

    waits: float
    waiting: float
    error: float


def _converged(servers: int, choices: int, load: float, idle_servers: float) -> _Found:
    """Return the means for a bound of the difference that is large enough."""
    found, before, change = _Found(0.0, 0.0, math.inf), math.inf, math.inf
    for most in _bounds(servers):
        if found.error <= _ENOUGH:
            break
        waits, waiting = _Chain(_Shapes(servers, choices, most), load, idle_servers).solved()
        before, change = change, abs(waiting - found.waiting) / max(waiting, _TINY)
        # The changes to come are a geometric series, once they fall.
        falls = change < before < math.inf
        found = _Found(waits, waiting, change**2 / (before - change) if falls else math.inf)
    if found.error > _ACCEPTED:
        raise InputError(
            f"servers = {servers:,} with choices = {choices:,}: must be fewer, or the load lower, for the chain to be "
            f"solved in a second"
        )
    return found


def _bounds(servers: int) -> range:
    """Return the bounds of the difference whose chain can be solved; none if there are too few to see an error."""
    most = 0
    while math.comb(most + servers, most + 1) <= min(_MOST_SHAPES, servers * _MOST_STATES):
        most += 1
    return range(1, most + 1 if most >= _LEAST_BOUNDS else 1, 1 if most < _MANY_BOUNDS else 2)


@dataclass(frozen=True)
class _Shapes:
    """The shapes of queues that differ by at most `most`, and where arrivals and departures lead.

    A state is a shape and the length of the shortest queue. The number in the system is the sum of the shape and a
    multiple of c, so shapes with the same remainder share their levels; within these they are ordered by their sum.
    """

    servers: int
    choices: int
    most: int

    @cached_property
    def by_remainder(self) -> list[list[Shape]]:
        """The shapes by the remainder of their sum."""
        found: list[list[Shape]] = [[] for _ in range(self.servers)]
        for longer in combinations_with_replacement(range(self.most, -1, -1), self.servers - 1):
            found[sum(longer) % self.servers].append((*longer, 0))
        return [sorted(shapes, key=sum) for shapes in found]

    @cached_property
    def sums(self) -> list[Matrix]:
        """The sum of each shape, by remainder."""
        return [np.array(list(map(sum, shapes)), int) for shapes in self.by_remainder]

    @cached_property
    def longer(self) -> list[Matrix]:
        """How many queues are longer than the shortest in each shape, by remainder."""
        return [
            np.count_nonzero(np.array(shapes, int).reshape(len(shapes), self.servers), 1)
            for shapes in self.by_remainder
        ]

    @cached_property
    def place(self) -> dict[Shape, int]:
        """The place of each shape among those with its remainder."""
        return {shape: i for shapes in self.by_remainder for i, shape in enumerate(shapes)}

    @cached_property
    def up(self) -> list[Matrix]:
        """Where a customer that arrives leads, by remainder."""
        return [self._matrix(r, r + 1, self._joined) for r in range(self.servers)]

    @cached_property
    def down(self) -> list[Matrix]:
        """The rates of departures while all servers are busy, by remainder; a server has the rate 1."""
        return [self._matrix(r, r - 1, self._departed) for r in range(self.servers)]

    @cached_property
    def down_idle(self) -> list[Matrix]:
        """The same where the shortest queue is empty."""
        return [self._matrix(r, r - 1, self._departed_from_others) for r in range(self.servers)]

    def _matrix(self, source: int, target: int, moves: Any) -> Matrix:
        shapes = self.by_remainder[source]
        matrix = np.zeros((len(shapes), len(self.by_remainder[target % self.servers])))
        for i, shape in enumerate(shapes):
            for moved, rate in moves(shape):
                matrix[i, self.place[moved]] += rate
        return matrix

    def _joined(self, shape: Shape) -> Iterator[tuple[Shape, float]]:
        draws, rest = math.comb(self.servers, self.choices), self.servers
        for length, equal in reversed(_groups(shape)):
            chance = math.comb(rest, self.choices) - math.comb(rest - equal, self.choices)
            rest -= equal
            if chance:
                # Beyond the bound, a customer joins the shortest queue at once.
                yield _moved(shape, length if length < self.most else 0, 1), chance / draws

    def _departed(self, shape: Shape) -> Iterator[tuple[Shape, float]]:
        for length, equal in _groups(shape):
            beyond = length == 0 and shape[0] == self.most
            yield _moved(shape, shape[0] if beyond else length, -1), equal

    def _departed_from_others(self, shape: Shape) -> Iterator[tuple[Shape, float]]:
        for length, equal in _groups(shape):
            if length:
                yield _moved(shape, length, -1), equal


def _groups(shape: Shape) -> list[tuple[int, int]]:
    """Return the lengths, longest first, and how many queues have each."""
    return [(length, len(list(equal))) for length, equal in groupby(shape)]


def _moved(shape: Shape, length: int, change: int) -> Shape:
    """Return the shape after a queue of this length has become longer or shorter by one."""
    lengths = list(shape)
    lengths[lengths.index(length)] += change
    lengths.sort(reverse=True)
    return tuple([one - lengths[-1] for one in lengths])


@dataclass(frozen=True)
class _Chain:
    """The chain, level by level of the number in the system; `load` is the arrival rate in services."""

    shapes: _Shapes
    load: float
    idle_servers: float

    def solved(self) -> tuple[float, float]:
        """Return the probability of waiting and the mean number waiting."""
        servers = self.shapes.servers
        total = waits = waiting = 0.0
        shares: Matrix = np.ones(1)
        for n, shares in enumerate(self._levels()):
            busy = self._busy(n)
            total += float(shares.sum())
            waits += float(shares @ self._all_drawn_busy(n))
            waiting += float(shares @ (n - busy))
        # Beyond the last level all are busy, and each level has `load / servers` of the one below.
        last, first = float(shares.sum()), self._last - servers
        beyond = self.load / self.idle_servers
        mass = last * beyond
        return (waits + mass) / (total + mass), (waiting + mass * (first + servers / self.idle_servers)) / (
            total + mass
        )

    @property
    def _last(self) -> int:
        """The highest level at which a server can be idle."""
        return (self.shapes.servers - 1) * self.shapes.most

    def _levels(self) -> Iterator[Matrix]:
        """Yield the shares of the states of each level, relative to the empty system."""
        stays = self._stays()
        shares: Matrix = np.ones(1)
        yield shares
        for n in range(1, self._last + 1):
            shares = np.linalg.solve(stays[n].T, shares @ self._up(n - 1))
            yield shares

    def _stays(self) -> dict[int, Matrix]:
        """Return of each level the rates out, less those that come back before the level is left downwards."""
        first_down = self._far_down()
        found = {}
        for n in range(self._last, 0, -1):
            down = self._down(n)
            found[n] = np.diag(self.load + down.sum(axis=1)) - self._up(n) @ first_down
            first_down = np.linalg.solve(found[n], down)
        return found

    def _far_down(self) -> Matrix:
        """Return with which shape the level above the last one is left downwards: the same as c levels higher."""
        after, servers = self._last + 1, self.shapes.servers
        found: Matrix = self.shapes.down[after % servers] / servers
        for _ in range(_MOST_ROUNDS):
            before = found
            for n in range(after + servers - 1, after - 1, -1):
                down = self.shapes.down[n % servers]
                stays = (self.load + servers) * np.eye(len(down)) - self.load * self.shapes.up[n % servers] @ found
                found = np.linalg.solve(stays, down)
            if np.abs(found - before).max() < _SAME:
                break
        return found

    def _up(self, n: int) -> Matrix:
        return self.load * self.shapes.up[n % self.shapes.servers][: self._size(n), : self._size(n + 1)]

    def _down(self, n: int) -> Matrix:
        all_busy, some_idle = self.shapes.down[n % self.shapes.servers], self.shapes.down_idle[n % self.shapes.servers]
        found = np.where(self._has_idle(n)[:, None], some_idle[: self._size(n)], all_busy[: self._size(n)])
        return found[:, : self._size(n - 1)]

    def _busy(self, n: int) -> Matrix:
        """Return the number of busy servers of each state of a level."""
        longer = self.shapes.longer[n % self.shapes.servers][: self._size(n)]
        return np.where(self._has_idle(n), longer, self.shapes.servers)

    def _all_drawn_busy(self, n: int) -> Matrix:
        servers, choices = self.shapes.servers, self.shapes.choices
        chances = np.array([math.comb(busy, choices) / math.comb(servers, choices) for busy in range(servers + 1)])
        return np.asarray(chances[self._busy(n)])

    def _has_idle(self, n: int) -> Matrix:
        """Return for each state of a level whether its shortest queue is empty."""
        return np.asarray(self.shapes.sums[n % self.shapes.servers][: self._size(n)] == n)

    def _size(self, n: int) -> int:
        """Return the number of states of a level: shapes whose sum is no larger."""
        return int(np.searchsorted(self.shapes.sums[n % self.shapes.servers], n, "right"))
