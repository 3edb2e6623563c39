"""What can be said for sure of values that vary: whether their mean is above 0, or below.

Values of one run depend on each other, and replications do not. So that a system is given up early, one run can show
that its mean is above 0, by batch means. That a mean is below 0 is only said after replications: a test that can be
made after each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from simqueue.decisions.tuning.series import Values
from simqueue.statistics.batchmeans import NUMBERS, mean_by_batches
from simqueue.statistics.intervals import mean_interval
from simqueue.statistics.selection import told_apart

_FEWEST_RUNS: Final = 5
"""Replications from which on their means have an interval that is not mostly chance."""
_ENOUGH_RUNS: Final = 8
"""Replications from which on their means say more than five batches do."""


def lower_end(runs: Sequence[Values], error: float) -> float | None:
    """Return what the mean of the values is above, but for a probability of `error`; None if that cannot be told.

    Parameters
    ----------
    runs : sequence of arrays
        The values of each run, in order of time.
    error : float
    """
    together = np.concatenate(runs) if runs else np.zeros(0)
    if not np.isfinite(together).all():
        return None
    by_batches = len(together) >= NUMBERS[-1] and len(together) > len(runs) and len(runs) < _ENOUGH_RUNS
    if by_batches:
        return mean_by_batches(together, 1 - 2 * error).low
    if len(runs) >= _FEWEST_RUNS:
        return mean_interval([float(values.mean()) for values in runs], 1 - 2 * error).low
    return None


def surely_below(runs: Sequence[Values], error: float) -> bool:
    """Return whether the mean is below 0, by a test over replications that can be made after each of them."""
    means = [float(values.mean()) for values in runs if len(values)]
    if len(means) < len(runs) or not np.isfinite(means).all() or sum(means) >= 0:
        return False
    return told_apart(means, [0.0] * len(means), error)


@cache
def fewest_replications(error: float) -> int:
    """Return after how many replications `surely_below` can answer yes at the earliest."""
    n = 2
    while not told_apart([-1.0] * n, [0.0] * n, error):
        n += 1
    return n
