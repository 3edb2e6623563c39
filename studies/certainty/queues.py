"""Queues whose load is known, played customer by customer: where the rules for overload are tried."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from simqueue.statistics.stays import Stays

Served = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Arrival and service times -> start and end times."""


def first_come(servers: int) -> Served:
    """Return a queue with equal servers."""

    def served(arrival_s: np.ndarray, service_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        free = [0.0] * servers
        start_s = np.empty_like(arrival_s)
        for i, (arrives, lasts) in enumerate(zip(arrival_s.tolist(), service_s.tolist(), strict=True)):
            start_s[i] = max(arrives, free[0])
            heapq.heapreplace(free, start_s[i] + lasts)
        return start_s, start_s + service_s

    return served


def shortest_first(arrival_s: np.ndarray, service_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Play one server that takes the shortest waiting request."""
    start_s = np.empty_like(arrival_s)
    waiting: list[tuple[float, int]] = []
    now, arrived = 0.0, 0
    for _ in range(len(arrival_s)):
        now = now if waiting else max(now, float(arrival_s[arrived]))
        while arrived < len(arrival_s) and arrival_s[arrived] <= now:
            heapq.heappush(waiting, (float(service_s[arrived]), arrived))
            arrived += 1
        lasts, which = heapq.heappop(waiting)
        start_s[which] = now
        now += lasts
    return start_s, start_s + service_s


def shared(alone_s: float, each_s: float) -> Served:
    """Return a server of all requests at once; with n of them, a unit of work takes alone_s + n each_s."""

    def served(arrival_s: np.ndarray, work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        end_s = np.empty_like(arrival_s)
        inside: list[tuple[float, int]] = []
        now = done = 0.0
        for i, arrives in enumerate([*arrival_s.tolist(), np.inf]):
            while inside and now + (inside[0][0] - done) * (alone_s + each_s * len(inside)) <= arrives:
                now += (inside[0][0] - done) * (alone_s + each_s * len(inside))
                done, which = heapq.heappop(inside)
                end_s[which] = now
            if i < len(arrival_s):
                done += (arrives - now) / (alone_s + each_s * len(inside)) if inside else 0.0
                now = arrives
                heapq.heappush(inside, (done + float(work[i]), i))
        return arrival_s.copy(), end_s

    return served


def per_server(servers: int) -> Served:
    """Return servers that do a unit of work per second together."""
    queue = first_come(servers)
    return lambda arrival_s, work: queue(arrival_s, servers * work)


def run_of(served: Served, load: float, number: int, rng: np.random.Generator, cv: float = 1.0) -> Stays:
    """Return a run with gamma gaps; a request has exponential work of mean 1, of which `served` can do 1 a second."""
    arrival_s = np.cumsum(rng.gamma(1 / cv**2, cv**2, number) / load)
    work = rng.exponential(1.0, number)
    start_s, end_s = served(arrival_s, work)
    tokens = 1 + 100 * work  # the first of them at the start
    none, kept = np.zeros(number), np.zeros(number, dtype=np.bool_)
    return Stays(arrival_s, start_s, start_s, end_s, none, tokens, tokens.copy(), kept, kept, float(end_s.max()))
