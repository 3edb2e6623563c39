"""Stretches of time in which more requests arrive than can be served, read off recorded arrivals."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PER_CELL: Final = 20
"""Mean number of requests in a cell of time, of which a rate is the average over `SMOOTHED`."""
SMOOTHED: Final = 5
MOST_CELLS: Final = 100
CERTAIN: Final = 2.5
"""A stretch counts if its arrivals exceed what can be served by so many standard deviations of a Poisson number."""


def smoothed_rates(arrival_s: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the rate of arrivals over time, averaged over wide windows, in about as many cells as can be told apart.

    Parameters
    ----------
    arrival_s : array, shape (n,)
        Arrival times in seconds, in any order.

    Returns
    -------
    edges_s, rates_rps : float64 arrays, shapes (cells + 1,) and (cells,)
        Ends of equal cells from the first to the last arrival, and the rate in each; both empty if no time passes.
    """
    if len(arrival_s) < 2 or np.max(arrival_s) <= np.min(arrival_s):
        return np.empty(0), np.empty(0)
    cells = int(np.clip(len(arrival_s) // PER_CELL, 1, MOST_CELLS))
    counts, edges = np.histogram(arrival_s, bins=cells)
    around = np.ones(min(SMOOTHED, cells))
    near = np.convolve(counts, around, mode="same") / np.convolve(np.ones(cells), around, mode="same")
    return edges, np.asarray(near / (edges[1] - edges[0]))


def rushes(arrival_s: NDArray[Any], capacity_rps: float) -> list[tuple[float, float]]:
    """Return start and end of the stretches in which clearly more requests arrive than `capacity_rps`, in seconds."""
    edges, rates = smoothed_rates(arrival_s)
    if not len(rates):
        return []
    above = np.concatenate([[False], rates > capacity_rps, [False]])
    starts, ends = np.flatnonzero(above[1:] & ~above[:-1]), np.flatnonzero(above[:-1] & ~above[1:])
    if not len(starts):
        return []
    apart = starts[1:] - ends[:-1] >= SMOOTHED  # shorter gaps are within one window
    firsts, lasts = starts[np.append(True, apart)], ends[np.append(apart, True)]
    found = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        lasts_s = float(edges[last] - edges[first])
        arrived = float(np.mean(rates[first:last])) * lasts_s
        if arrived - capacity_rps * lasts_s > CERTAIN * np.sqrt(arrived):
            found.append((float(edges[first]), float(edges[last])))
    return found


def rush_share(arrival_s: NDArray[Any], capacity_rps: float) -> float:
    """Return the share of the time between the first and the last arrival in such stretches; 0 if no time passes."""
    span_s = float(np.max(arrival_s) - np.min(arrival_s)) if len(arrival_s) else 0.0
    return sum(end - start for start, end in rushes(arrival_s, capacity_rps)) / span_s if span_s > 0 else 0.0
