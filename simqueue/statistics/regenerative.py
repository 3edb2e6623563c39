"""Regenerative intervals: a run starts again whenever a request finds the system empty.

The cycles between these instants are independent if arrivals are. The mean is a ratio of two sums over cycles, and its
error follows from the spread of the cycles. A few long cycles decide it, so the interval is corrected for skewness and
counts only the cycles that matter. Source: Crane and Lemoine 1977, An Introduction to the Regenerative Method for
Simulation Analysis.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from simqueue.statistics.batchmeans import RunInterval, without
from simqueue.statistics.estimate import hall_ends
from simqueue.statistics.intervals import CONFIDENCE, student_t
from simqueue.statistics.moments import skewness

LEAST_CYCLES = 200


def cycle_starts(arrival_s: NDArray[Any], leave_s: NDArray[Any]) -> NDArray[np.intp]:
    """Return the indices of the requests that find the system empty.

    Parameters
    ----------
    arrival_s, leave_s : arrays of shape (n_requests,), in order of arrival
        In seconds; infinity if a request never left.
    """
    latest = np.maximum.accumulate(leave_s)
    return np.flatnonzero(np.append(True, latest[:-1] <= arrival_s[1:]))


def mean_by_cycles(values: NDArray[Any], starts: NDArray[np.intp], confidence: float = CONFIDENCE) -> RunInterval:
    """Return the interval of the mean over all complete cycles.

    Parameters
    ----------
    values : array of shape (n_requests,), in order of arrival
        NaN for requests without a value, which do not count.
    starts : array of int
        See `cycle_starts`. What comes before the first and after the last is left out.
    confidence : float
    """
    counted = ~np.isnan(values)
    n = len(starts) - 1
    if n < LEAST_CYCLES:
        estimate = float(np.mean(values[counted]))
        return without(
            estimate, f"the system emptied only {max(n, 0):,} times; regenerative intervals need {LEAST_CYCLES} cycles"
        )
    inside = slice(starts[0], starts[-1])
    sums = np.add.reduceat(np.where(counted, values, 0.0)[inside], starts[:-1] - starts[0])
    counts = np.add.reduceat(counted.astype(np.int64)[inside], starts[:-1] - starts[0])
    estimate = float(sums.sum() / counts.sum())
    off = sums - estimate * counts
    square = float(off @ off)
    if square == 0:
        return RunInterval(estimate, estimate, estimate, f"{n:,} cycles")
    error = math.sqrt(square / (n - 1) / n) / float(counts.mean())
    effective = square**2 / float(np.sum(off**4))
    # As many degrees of freedom as there are cycles that decide the error.
    wider = float(scipy.special.stdtrit(max(effective, 1.0), (1 + confidence) / 2))
    normal = float(scipy.special.ndtri((1 + confidence) / 2))
    below, above = hall_ends(student_t(n, confidence), skewness(off), n)
    return RunInterval(
        estimate,
        estimate - error * max(wider, below),
        estimate + error * above * max(1.0, wider / normal),
        f"{n:,} cycles",
    )
