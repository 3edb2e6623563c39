"""The distribution of the time between tokens as a curve of few points, each of which is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Parts = Callable[[], Iterable[tuple[Floats, Integers]]]
"""Returns the parts of a sample, from the start at each call: values and their counts."""

MOST_POINTS: Final = 1200
_SAMPLED: Final = 20_000
"""So many values of each part are candidates for a point, more of them towards the largest."""


def thinned(n: int, most: int = MOST_POINTS) -> Integers:
    """Return indices of at most this many of `n` points of a distribution: even in the body, denser towards the end."""
    if n <= most:
        return np.arange(n)
    body = np.linspace(0, n - 1, most // 2)
    tail = n - np.geomspace(1, n, most // 2)
    return np.unique(np.concatenate([body, tail]).astype(np.int64))


def gap_curve(parts: Parts) -> tuple[Floats, Floats]:
    """Return values of a sample in ascending order, and for each the share of the sample that is not above it.

    Parameters
    ----------
    parts : callable
        The sample. It is read twice, one part at a time.

    Returns
    -------
    values, shares : arrays of the same shape, at most `MOST_POINTS` long
        The last share is 1. Both are empty if the sample is.
    """
    seen = [_outline(values[counts > 0]) for values, counts in parts()]
    found = np.unique(np.concatenate([np.zeros(0), *seen]))
    points = found[thinned(len(found))]
    if not len(points):
        return points, points
    counted = np.zeros(len(points), dtype=np.int64)
    for values, counts in parts():
        held = counts > 0
        np.add.at(counted, np.searchsorted(points, values[held]), counts[held])
    return points, np.cumsum(counted) / counted.sum()


def _outline(values: Floats) -> Floats:
    """Return some values of a part: more of them towards the largest."""
    ordered = np.sort(values)
    return ordered[thinned(len(ordered), _SAMPLED)] if len(ordered) > _SAMPLED else ordered
