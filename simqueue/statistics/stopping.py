"""The number of replications: sequential stopping with look-ahead.

Source: Hoad, Robinson and Davies 2010, Automated selection of the number of replications for a discrete-event
simulation.
"""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.statistics.intervals import CONFIDENCE, mean_interval

LEAST = 3
"""Smallest number of replications after which the rule can stop."""


def look_ahead(n: int, at_least: int = 5) -> int:
    """Return how many further replications must confirm the precision found after `n`: 5, or n / 20 if it is more."""
    return max(at_least, n * at_least // 100)


def precise_at(
    values: Sequence[float], relative: float, confidence: float = CONFIDENCE, *, least: int = LEAST
) -> int | None:
    """Return the number of replications after which the mean is precise and stays so for the whole look-ahead.

    Parameters
    ----------
    values : sequence of float
        One value per replication, in order.
    relative : float
        Largest allowed half-width over the absolute mean, > 0.
    confidence : float
    least : int
        Smallest number of replications to return, at least 2.

    Returns
    -------
    int or None
        None if the precision has not been reached, or not yet for the whole look-ahead.
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
