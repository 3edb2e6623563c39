"""Independent solutions that the simulation is held against: chains solved with sparse matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse, stats
from scipy.sparse.linalg import spsolve


@dataclass(frozen=True)
class SteadyState:
    """Means in seconds, and shares."""

    wait_s: float
    ttft_s: float
    e2el_s: float
    itl_s: float
    busy: float
    batch: float


def affine_steps(
    rate: float, slots: int, output: float, prompt: int, a: float, b: float, c: float, most: int = 160
) -> SteadyState:
    """Solve continuous batching with steps a + b decodes + c prompt tokens, geometric outputs and equal prompts.

    States at step starts: (n in the system, m of them newly admitted). A step takes a + b (min(n, slots) - m) +
    c prompt m seconds; each of its min(n, slots) requests ends with probability 1/output; arrivals are Poisson. From
    an empty system the next step starts with the next arrival. Time averages follow by renewal-reward.
    """
    index = {}
    for n in range(1, most + 1):
        for m in range(min(n, slots) + 1):
            index[n, m] = len(index)
    size = len(index)
    rows, columns, chances = [], [], []
    emptied = np.zeros(size)
    lengths = np.zeros(size)
    for (n, m), i in index.items():
        served = min(n, slots)
        lengths[i] = a + b * (served - m) + c * prompt * m
        ends = stats.binom.pmf(np.arange(served + 1), served, 1 / output)
        mean = rate * lengths[i]
        arrivals = stats.poisson.pmf(np.arange(int(mean + 10 * np.sqrt(mean) + 25)), mean)
        for gone, p_gone in enumerate(ends):
            if p_gone < 1e-14:
                continue
            for came, p_came in enumerate(arrivals):
                p = p_gone * p_came
                if p < 1e-16:
                    continue
                after = n - gone + came
                if after == 0:
                    emptied[i] += p
                    target = index[1, 1]
                else:
                    after = min(after, most)
                    target = index[after, max(0, min(after, slots) - (served - gone))]
                rows.append(target)
                columns.append(i)
                chances.append(p)
    moves = sparse.csc_matrix((chances, (rows, columns)), shape=(size, size))
    balance = (moves - sparse.identity(size)).tolil()
    balance[0, :] = 1.0
    right = np.zeros(size)
    right[0] = 1.0
    share = spsolve(balance.tocsc(), right)
    n = np.array([key[0] for key in index])
    m = np.array([key[1] for key in index])
    served = np.minimum(n, slots)
    busy_s = share @ lengths
    cycle_s = busy_s + share @ emptied / rate
    waiting = share @ (lengths * (n - served + rate * lengths / 2)) / cycle_s
    serving = share @ (lengths * served) / cycle_s
    wait_s = waiting / rate
    first_s = share @ (lengths * m) / (share @ m)
    e2el_s = wait_s + serving / rate
    itl_s = share @ (lengths * (served - m)) / (share @ (served - m))
    return SteadyState(wait_s, wait_s + first_s, e2el_s, itl_s, busy_s / cycle_s, serving * cycle_s / busy_s)
