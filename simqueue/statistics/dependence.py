"""How much a series of dependent observations is worth: independent stretches, and what intervals need of them.

Requests that follow each other see the same queue. So thousands of them can be worth a handful of independent ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simqueue.statistics.moments import skewness

Floats = NDArray[np.float64]

PARTS = 5
"""Each series is cut into this many parts, whose means tell how dependent it is."""
LEAST_STRETCHES = 12
"""With fewer independent stretches in a run, what the empty start leaves behind is not small beside the interval."""
LEAST_BEYOND = 15
"""With fewer independent observations beyond a percentile, its intervals cover less than they promise."""


def stretches(series: Sequence[Floats]) -> float:
    """Return how many independent observations one series is worth on average; infinity if all are equal.

    The variance of the means of `PARTS` parts of each series is compared with that of independent observations.

    Parameters
    ----------
    series : sequence of arrays
        Stretches of one process in order of time, at least one observation together.
    """
    pooled = np.concatenate(series)
    mean = float(pooled.mean())
    parts = [part for one in series for part in np.array_split(one, PARTS) if len(part)]
    between = math.fsum(len(part) * (float(part.mean()) - mean) ** 2 for part in parts) / max(len(parts) - 1, 1)
    if all_equal(pooled) or between <= 0:
        return math.inf
    return len(pooled) / len(series) * float(pooled.var()) / between


def all_equal(values: Floats) -> bool:
    """Return whether values differ by rounding only."""
    return bool(np.ptp(values) <= 1e-12 * np.max(np.abs(values)))


def needed_for_mean(values: Floats) -> float:
    """Return how many independent observations of a skewed distribution the interval of its mean needs.

    Cochran (1977, Sampling Techniques, section 2.15) asks for 25 times the squared skewness if observations are
    independent. Here their number is itself an estimate, and by measured coverage it takes 40.
    """
    return 40 * skewness(values) ** 2
