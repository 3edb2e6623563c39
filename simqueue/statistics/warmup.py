"""When a run that starts empty has settled: MSER-5 and Welch's moving average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simqueue.errors import InputError

BATCH = 5


@dataclass(frozen=True, slots=True)
class Truncation:
    """What to leave out at the start of a series.

    Attributes
    ----------
    cut : int
        Observations to leave out.
    n : int
        Observations looked at.
    settled : bool
        Whether the rule found a minimum inside the first half. If not, the series is too short to tell, and `cut` is
        half of it.
    """

    cut: int
    n: int
    settled: bool

    @property
    def kept_share(self) -> float:
        """Share of the observations that stays."""
        return 1 - self.cut / self.n if self.n else 1.0


def averaged_series(series: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return the mean over replications of the i-th observation, as far as all replications reach.

    Parameters
    ----------
    series : sequence of arrays
        One a replication, observations in order; NaN where one is undefined.
    """
    if not series:
        raise InputError("warm-up: there is no series to look at")
    n = min(len(np.asarray(one)) for one in series)
    stacked = np.array([np.asarray(one, dtype=np.float64)[:n] for one in series])
    known = ~np.isnan(stacked)
    sums = np.where(known, stacked, 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    return np.asarray((sums[counts > 0]) / counts[counts > 0])


def mser5(series: ArrayLike) -> Truncation:
    """Return where to cut a series by MSER-5 (White 1997; White, Cobb and Spratt 2000).

    Means of five are taken; the cut is where the squared standard error of what stays is least, among cuts in the first
    half. Apply it to the series averaged over replications: on a single one it often cuts nothing.

    Parameters
    ----------
    series : array of shape (n,)
    """
    values = np.asarray(series, dtype=np.float64)
    k = len(values) // BATCH
    if k < 4:
        return Truncation(0, len(values), settled=False)
    means = values[: k * BATCH].reshape(k, BATCH).mean(axis=1)
    left = k - np.arange(k // 2 + 1)
    centred = means - means.mean()  # so that the sums of squares below cancel no digits
    sums = np.cumsum(centred[::-1])[::-1][: k // 2 + 1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1][: k // 2 + 1]
    error = (squares - sums**2 / left) / left.astype(np.float64) ** 2
    best = int(np.argmin(error))
    return Truncation(best * BATCH, len(values), settled=best < k // 2)


def welch(series: ArrayLike, window: int) -> NDArray[Any]:
    """Return Welch's moving average: centred, over 2 window + 1 values, fewer near the start.

    Parameters
    ----------
    series : array of shape (n,)
        Averaged over replications.
    window : int
        At least 0.

    Returns
    -------
    array of shape (n - window,)
    """
    values = np.asarray(series, dtype=np.float64)
    if window < 0 or window >= max(1, len(values)):
        raise InputError(f"window = {window}: must be at least 0 and below the {len(values)} values of the series")
    total = np.concatenate([[0.0], np.cumsum(values)])
    centre = np.arange(len(values) - window)
    reach = np.minimum(centre, window)
    return np.asarray((total[centre + reach + 1] - total[centre - reach]) / (2 * reach + 1))
