"""Queues served in steps: a Markov chain of the number in the system at the starts of steps, solved numerically."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError

_MOST_STATES = 6000
_MOST_AT_START = 8192
_TAIL = 1e-11
"""Largest probability that the ignored states may have."""

Stay = Callable[[int], tuple[int, NDArray[Any]]]
"""Number in the system at the start of a step -> (number that certainly stays, distribution of how many more stay)."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Time averages by the renewal-reward theorem.

    Attributes
    ----------
    busy_share : float
        Share of time in which a step runs.
    mean_in_service : float
        Average over all time.
    mean_batch : float
        Number in service, averaged over the time in which a step runs.
    mean_wait_s : float
        From arrival to the start of the first step.
    """

    busy_share: float
    mean_in_service: float
    mean_batch: float
    mean_wait_s: float


def renewal_averages(
    arrival_rate: float, seconds: Callable[[int], float], stay: Stay, served: Callable[[int], int], *, start: int
) -> Averages:
    """Return the time averages of a stepped queue with Poisson arrivals.

    A step that starts with n customers in the system takes ``seconds(n)`` and serves ``served(n)`` of them. Customers
    that arrive during a step wait for its end. If the system is empty, the next step starts at the next arrival.

    Parameters
    ----------
    arrival_rate : float
        Per second; the queue must be stable.
    seconds, stay, served : callables of the number in the system
    start : int
        Initial number of states; it is doubled until the probability of all others is negligible.

    Raises
    ------
    InputError
        If the load is so close to 1 that 6,000 states are not enough, or if more than 8,192 are needed for any load.
    """
    if start > _MOST_AT_START:
        raise InputError(f"{start:,} states are too many, at most {_MOST_AT_START:,}: fewer slots or smaller batches")
    states = start
    while True:
        shares, emptied = _stationary(arrival_rate, seconds, stay, states)
        if shares[-max(1, states // 16) :].sum() < _TAIL:
            break
        if states >= _MOST_STATES:
            raise InputError(f"the load is too close to 1: {states} states are not enough; lower arrival_rate")
        states = min(2 * states, _MOST_STATES)
    n = np.arange(1, states + 1)
    lengths = np.array([seconds(int(k)) for k in n])
    in_service = np.array([served(int(k)) for k in n])
    busy_s = float(shares @ lengths)
    cycle_s = busy_s + emptied / arrival_rate
    waiting = float(shares @ (lengths * (n - in_service + arrival_rate * lengths / 2))) / cycle_s
    serving = float(shares @ (lengths * in_service)) / cycle_s
    return Averages(busy_s / cycle_s, serving, serving * cycle_s / busy_s, waiting / arrival_rate)


def _stationary(
    arrival_rate: float, seconds: Callable[[int], float], stay: Stay, states: int
) -> tuple[NDArray[Any], float]:
    """Return the share of steps that start with 1 .. `states` in the system, and the share that leave it empty."""
    moves = np.zeros((states, states + 1))
    arrivals: dict[float, NDArray[Any]] = {}
    for n in range(1, states + 1):
        length = seconds(n)
        if length not in arrivals:
            arrivals[length] = poisson(arrival_rate * length, states)
        sure, more = stay(n)
        after = np.convolve(more, arrivals[length])[: states + 1 - sure]
        moves[n - 1, sure : sure + len(after)] = after
        moves[n - 1, -1] += 1 - after.sum()
    emptied = moves[:, 0].copy()
    chain = moves[:, 1:]
    chain[:, 0] += emptied
    balance = chain.T - np.eye(states)
    balance[-1] = 1.0
    right = np.zeros(states)
    right[-1] = 1.0
    shares = np.clip(np.linalg.solve(balance, right), 0, None)
    return shares, float(shares @ emptied)


def poisson(mean: float, most: int) -> NDArray[Any]:
    """Return P(k) for k = 0 .. `most`, without the negligible end."""
    last = min(most, math.ceil(mean + 12 * math.sqrt(mean) + 40))
    k = np.arange(last + 1)
    return np.asarray(np.exp(-mean + k * math.log(mean) - np.array([math.lgamma(i + 1) for i in k])))
