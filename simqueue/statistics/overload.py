"""Whether a run has a steady state at all: what is asked against what can be carried, and what happened.

Three signs: the offered load (rate over capacity), a rising trend of the number inside, and a backlog when arrivals
stop. On M/M/1 with 5,000 customers, trend and backlog flag no runs at a load of 0.8 and nearly all at 1.05; each alone
flags some runs below 1, so they count together only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCHES = 20
TREND_T = 2.55
"""t-value of the slope over 20 batch means above which it counts: a one-sided level of 1 % with 18 degrees."""
BACKLOG_SHARE = 0.02
LEAST_REQUESTS = 200
"""With fewer requests a queue that fills and drains once looks like one that grows."""
LEAST_STAYS = 20
"""A run must last this many times as long as its first requests stay: filling up from empty looks like growth too."""


@dataclass(frozen=True, slots=True)
class Trend:
    """What happened to the number inside while requests arrived.

    Attributes
    ----------
    slope_t : float
        t-value of the slope over batch means; 0 where they do not change.
    backlog_share : float
        Requests inside at the last arrival over all that arrived.
    """

    slope_t: float
    backlog_share: float

    @property
    def rising(self) -> bool:
        """Whether both signs of overload are there."""
        return self.slope_t > TREND_T and self.backlog_share > BACKLOG_SHARE


def trend(arrival_s: NDArray[Any], leave_s: NDArray[Any]) -> Trend | None:
    """Return the trend of the number inside between first and last arrival; None of too few requests or too short runs.

    Parameters
    ----------
    arrival_s, leave_s : arrays of shape (n_requests,), in order of arrival
        When each request came and went; infinity where it never left.
    """
    n = len(arrival_s)
    if n < LEAST_REQUESTS:
        return None
    start_s, end_s = float(np.min(arrival_s)), float(np.max(arrival_s))
    first_stay_s = float(np.median((leave_s - arrival_s)[: n // 10]))
    if end_s <= start_s or end_s - start_s < LEAST_STAYS * first_stay_s:
        return None
    means = batch_means_inside(arrival_s, leave_s, start_s, end_s)
    inside = int(np.count_nonzero(leave_s > end_s))
    return Trend(slope_t(means), inside / n)


def batch_means_inside(
    arrival_s: NDArray[Any], leave_s: NDArray[Any], start_s: float, end_s: float, batches: int = BATCHES
) -> NDArray[np.float64]:
    """Return time averages of the number inside over equal stretches of time, shape (batches,)."""
    edges = np.linspace(start_s, end_s, batches + 1)

    def area(until_s: NDArray[Any], times_s: NDArray[Any]) -> NDArray[Any]:
        """Integral up to each edge of the number of times that have passed."""
        ranked = np.sort(times_s[np.isfinite(times_s)])
        passed = np.searchsorted(ranked, until_s)
        sums = np.concatenate([[0.0], np.cumsum(ranked - start_s)])
        return np.asarray(passed * (until_s - start_s) - sums[passed])

    return np.asarray(np.diff(area(edges, arrival_s) - area(edges, leave_s)) / np.diff(edges))


def slope_t(values: NDArray[np.float64]) -> float:
    """Return the t-value of the least-squares slope over equally spaced values; infinite on an exact line."""
    n = len(values)
    x = np.arange(n) - (n - 1) / 2
    y = values - values.mean()
    slope = float(x @ y / (x @ x))
    rest = float(np.sum((y - slope * x) ** 2)) / (n - 2)
    if slope == 0:
        return 0.0
    return slope / float(np.sqrt(rest / (x @ x))) if rest > 0 else float(np.copysign(np.inf, slope))


def is_overloaded(load: float | None, found: Trend | None, *, conclusive: bool = True) -> bool | None:
    """Return whether a run has no steady state: it is asked for more than it can carry, or its queue grew.

    Parameters
    ----------
    load : float or None
        Offered load over capacity, where it is known.
    found : Trend or None
    conclusive : bool
        Whether a queue that does not grow shows a steady state. It does not where requests wait for answers before
        they come, or leave without one: such a queue has a limit at any load.

    Returns
    -------
    bool or None
        None where nothing is known: no load, and no trend that shows anything.
    """
    if (load is not None and load >= 1) or (found is not None and found.rising):
        return True
    return False if load is not None or (found is not None and conclusive) else None


def met_somebody(arrival_s: NDArray[Any], leave_s: NDArray[Any]) -> float | None:
    """Return the share of requests that found another inside when they arrived; None of fewer than two.

    Parameters
    ----------
    arrival_s, leave_s : arrays of shape (n_requests,), in order of arrival
    """
    if len(arrival_s) < 2:
        return None
    latest = np.maximum.accumulate(leave_s)[:-1]
    return float(np.mean(latest > arrival_s[1:]))
