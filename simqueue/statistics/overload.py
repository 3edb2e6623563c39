"""Overload: whether a run has a steady state.

There are three signs of overload: an offered load (arrival rate over capacity) of 1 or more, a rising trend of the
number of requests in the system, and a backlog when arrivals stop. Trend and backlog count only together, because each
alone appears in some runs at a load below 1. On M/M/1 with 5,000 customers, together they flag no runs at a load of 0.8
and nearly all runs at 1.05.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCHES = 20
TREND_T = 2.55
"""t-value of the slope over 20 batch means above which it counts: 1 %, one-sided, 18 degrees of freedom."""
BACKLOG_SHARE = 0.02
"""Share of all requests in the system at the last arrival, above which the backlog counts."""
LEAST_REQUESTS = 200
"""Smallest number of requests: with fewer, a queue that fills and drains once looks like one that grows."""
LEAST_STAYS = 20
"""Smallest length of a run in sojourn times of its first requests: in a shorter run, filling up looks like growth."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How the number of requests in the system developed while requests arrived.

    Attributes
    ----------
    slope_t : float
        t-value of the slope over batch means; 0 if they do not change.
    backlog_share : float
        Requests in the system at the last arrival, over all requests.
    """

    slope_t: float
    backlog_share: float

    @property
    def rising(self) -> bool:
        """Whether trend and backlog both show overload."""
        return self.slope_t > TREND_T and self.backlog_share > BACKLOG_SHARE


def trend(arrival_s: NDArray[Any], leave_s: NDArray[Any]) -> Trend | None:
    """Return the trend of the number of requests in the system between the first and the last arrival.

    Parameters
    ----------
    arrival_s, leave_s : arrays of shape (n_requests,), in order of arrival
        When each request arrived and left, in seconds; infinity if it never left.

    Returns
    -------
    Trend or None
        None if there are too few requests (`LEAST_REQUESTS`) or the run is too short (`LEAST_STAYS`).
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
    """Return time averages of the number of requests in the system over equal intervals, shape (batches,)."""
    edges = np.linspace(start_s, end_s, batches + 1)

    def area(until_s: NDArray[Any], times_s: NDArray[Any]) -> NDArray[Any]:
        """Return the integral, up to each edge, of the number of `times_s` that have passed."""
        ranked = np.sort(times_s[np.isfinite(times_s)])
        passed = np.searchsorted(ranked, until_s)
        sums = np.concatenate([[0.0], np.cumsum(ranked - start_s)])
        return np.asarray(passed * (until_s - start_s) - sums[passed])

    return np.asarray(np.diff(area(edges, arrival_s) - area(edges, leave_s)) / np.diff(edges))


def slope_t(values: NDArray[np.float64]) -> float:
    """Return the t-value of the least-squares slope over equally spaced values; infinite for an exact line."""
    n = len(values)
    x = np.arange(n) - (n - 1) / 2
    y = values - values.mean()
    slope = float(x @ y / (x @ x))
    rest = float(np.sum((y - slope * x) ** 2)) / (n - 2)
    if slope == 0:
        return 0.0
    return slope / float(np.sqrt(rest / (x @ x))) if rest > 0 else float(np.copysign(np.inf, slope))


def is_overloaded(load: float | None, found: Trend | None, *, conclusive: bool = True) -> bool | None:
    """Return whether a run has no steady state: its load is at least 1, or its queue grew.

    Parameters
    ----------
    load : float or None
        Arrival rate over capacity; None if it is not known.
    found : Trend or None
    conclusive : bool
        Whether a queue that did not grow shows a steady state. It does not if requests wait for earlier responses
        before they arrive, or leave without a response, because such a queue is bounded at any load.

    Returns
    -------
    bool or None
        None if neither the load nor the trend can tell.
    """
    if (load is not None and load >= 1) or (found is not None and found.rising):
        return True
    return False if load is not None or (found is not None and conclusive) else None


def overlap_share(arrival_s: NDArray[Any], leave_s: NDArray[Any]) -> float | None:
    """Return the share of requests that found another request in the system at arrival; None with fewer than two.

    Parameters
    ----------
    arrival_s, leave_s : arrays of shape (n_requests,), in order of arrival
    """
    if len(arrival_s) < 2:
        return None
    latest = np.maximum.accumulate(leave_s)[:-1]
    return float(np.mean(latest > arrival_s[1:]))
