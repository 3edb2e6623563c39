"""The warm-up of a run that starts empty: the part to leave out of the statistics, by MSER-5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simqueue.errors import InputError

BATCH = 5


@dataclass(frozen=True, slots=True)
class Truncation:
    """The part to leave out at the start of a series.

    Attributes
    ----------
    cut : int
        Number of observations to leave out.
    n : int
        Number of observations in the series.
    conclusive : bool
        Whether the rule found a minimum in the first half. If not, the series is too short, and `cut` is half of it, or
        0 with fewer than 20 observations.
    """

    cut: int
    n: int
    conclusive: bool


def averaged_series(series: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return the mean over replications of the i-th observation, up to the length of the shortest series.

    Parameters
    ----------
    series : sequence of arrays
        One per replication, observations in order; NaN if an observation is undefined.

    Returns
    -------
    array of shape (n,)
        Without the observations that are undefined in all replications.
    """
    if not series:
        raise InputError("warm-up: needs at least one series")
    n = min(len(np.asarray(one)) for one in series)
    stacked = np.array([np.asarray(one, dtype=np.float64)[:n] for one in series])
    known = ~np.isnan(stacked)
    sums = np.where(known, stacked, 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    return np.asarray((sums[counts > 0]) / counts[counts > 0])


def mser5(series: ArrayLike) -> Truncation:
    """Return where MSER-5 cuts a series (White 1997; White, Cobb and Spratt 2000).

    The rule takes means of five observations. Among the cuts in the first half it chooses the one for which the rest
    has the smallest squared standard error. Apply it to the series averaged over replications; on a single series it
    often cuts nothing.

    Parameters
    ----------
    series : array of shape (n,)
    """
    values = np.asarray(series, dtype=np.float64)
    k = len(values) // BATCH
    if k < 4:
        return Truncation(0, len(values), conclusive=False)
    means = values[: k * BATCH].reshape(k, BATCH).mean(axis=1)
    left = k - np.arange(k // 2 + 1)
    centred = means - means.mean()  # so that the sums of squares below lose no digits
    sums = np.cumsum(centred[::-1])[::-1][: k // 2 + 1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1][: k // 2 + 1]
    error = (squares - sums**2 / left) / left.astype(np.float64) ** 2
    best = int(np.argmin(error))
    return Truncation(best * BATCH, len(values), conclusive=best < k // 2)
