"""How many replications are enough: sequential stopping with look-ahead.

Hoad, Robinson and Davies 2010, Automated selection of the number of replications for a discrete-event simulation.
"""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.statistics.intervals import CONFIDENCE, mean_interval

LEAST = 3


def look_ahead(n: int, at_least: int = 5) -> int:
    """Return how many further replications must stay precise after the first `n` that are: 5, or 5 n / 100."""
    return max(at_least, n * at_least // 100)


def precise_at(
    values: Sequence[float], relative: float, confidence: float = CONFIDENCE, *, least: int = LEAST
) -> int | None:
    """Return after how many replications the mean is precise and stays so for the whole look-ahead; None: not yet.

    Parameters
    ----------
    values : sequence of float
        One value a replication, in order.
    relative : float
        Largest half-width over the absolute mean, > 0.
    confidence : float
    least : int
        Replications before which nothing is decided, at least 2.
    """
    first: int | None = None
    for n in range(max(2, least), len(values) + 1):
        width = mean_interval(values[:n], confidence).relative
        if width is None or width > relative:
            first = None
        elif first is None:
            first = n
        if first is not None and n >= first + look_ahead(first):
            return first
    return None
