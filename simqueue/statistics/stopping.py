"""The number of replications: sequential stopping with look-ahead.

Sources: Hoad, Robinson and Davies 2010, Automated selection of the number of replications for a discrete-event
simulation; Law 2015, Simulation Modeling and Analysis, section 9.4 (the relative error).
"""

from __future__ import annotations

from collections.abc import Callable

LEAST = 3
"""Smallest number of replications after which the rule can stop."""


def look_ahead(n: int, at_least: int = 5) -> int:
    """Return how many further replications must confirm the precision found after `n`: 5, or n / 20 if it is more."""
    return max(at_least, n * at_least // 100)


def largest_width(relative_error: float) -> float:
    """Return how wide an interval may be, relative to the estimate, so that the estimate has this relative error.

    The error is relative to the true value. If no value of the interval is farther from the estimate than a share w of
    the estimate, it is at most w / (1 - w) of the true value.
    """
    return relative_error / (1 + relative_error)


def precise_at(widths: Callable[[int], float | None], count: int, relative: float, *, least: int = LEAST) -> int | None:
    """Return the number of replications after which a value is precise and stays so for the whole look-ahead.

    Parameters
    ----------
    widths : callable
        Returns the width of the interval relative to the estimate, from the first n replications; None if it is
        undefined, or if the interval cannot be trusted.
    count : int
        Number of replications that have been made.
    relative : float
        Largest allowed width, > 0.
    least : int
        Smallest number of replications to return, at least 2.

    Returns
    -------
    int or None
        None if the precision has not been reached, or not yet for the whole look-ahead.
    """
    first: int | None = None
    for n in range(max(2, least), count + 1):
        width = widths(n)
        if width is None or width > relative:
            first = None
        elif first is None:
            first = n
        if first is not None and n >= first + look_ahead(first):
            return first
    return None
