"""The queues of a few servers as one sparse chain of all queue lengths: nothing is known but the rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

Lengths = tuple[int, ...]


@cache
def drawn_queues(servers: int, choices: int, load: float, most: int) -> tuple[float, float]:
    """Return the probability of waiting and the mean number waiting, with at most `most` customers in a queue.

    `load` is the utilisation of each server, and a service takes 1 on average. Customers that find the drawn queues
    full are lost, so `most` must be so large that this is rare.
    """
    states = [one for one in product(range(most + 1), repeat=servers) if list(one) == sorted(one)]
    number = {one: i for i, one in enumerate(states)}
    rows, columns, rates = [], [], []
    for one in states:
        for other, rate in _moves(one, choices, load * servers, most):
            rows += [number[other], number[one]]
            columns += [number[one], number[one]]
            rates += [rate, -rate]
    balance = csc_matrix((rates, (rows, columns)), shape=(len(states), len(states))).tolil()
    balance[0, :] = 0
    balance[0, 0] = 1  # the empty system has the weight 1, and its balance follows from the others
    right = np.zeros(len(states))
    right[0] = 1
    shares = splu(balance.tocsc()).solve(right)
    shares /= shares.sum()
    all_busy = [np.mean([min(drawn) > 0 for drawn in combinations(one, choices)]) for one in states]
    waiting = [sum(max(0, length - 1) for length in one) for one in states]
    return float(shares @ all_busy), float(shares @ waiting)


def _moves(one: Lengths, choices: int, rate: float, most: int) -> Iterator[tuple[Lengths, float]]:
    draws = list(combinations(range(len(one)), choices))
    for drawn in draws:
        shortest = min(drawn, key=lambda i: one[i])
        if one[shortest] < most:
            yield _changed(one, shortest, 1), rate / len(draws)
    for i, length in enumerate(one):
        if length:
            yield _changed(one, i, -1), 1.0


def _changed(one: Lengths, place: int, change: int) -> Lengths:
    return tuple(sorted(length + (i == place) * change for i, length in enumerate(one)))
