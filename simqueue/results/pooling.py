"""Statistics of a sample that need not fit into memory, to the last bit those of the whole.

The sample comes as pairs of a value and how often it occurs, some at a time and as often as wanted. The first pass adds
up; a second one counts how much of the sample lies in each of many ranges of values, so that it is known in which of
them a percentile lies; then only the pairs of that range are held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simqueue.results.metrics import Floats, Integers, Place, Pooled, products, total

Pairs = tuple[Floats, Integers]
Parts = Callable[[], Iterable[Pairs]]
"""Goes through a sample anew each time: finite values, and how often each occurs (>= 0), arrays of equal length."""

PAIRS_AT_ONCE: Final = 100_000
_SAMPLED: Final = 64
"""One value in so many helps to choose the ranges."""


@dataclass(frozen=True, slots=True)
class PooledStatistics:
    """A sample in a few numbers; None of nothing.

    Attributes
    ----------
    count : int
    mean, maximum : float or None
    percentiles : tuple of float or None
        One each that was asked for.
    """

    count: int
    mean: float | None
    maximum: float | None
    percentiles: tuple[float | None, ...]


def pooled_statistics(parts: Parts, levels: Sequence[float], pairs_at_once: int = PAIRS_AT_ONCE) -> PooledStatistics:
    """Return the statistics that `Pooled.of` everything has, bit for bit, holding few pairs at a time.

    Parameters
    ----------
    parts : callable
        The sample.
    levels : sequence of float
        The percentiles that are wanted, 0 to 100.
    pairs_at_once : int
        About how many pairs to hold at a time, beside a part; more only where the parts are many and small.
    """
    outline = _Outline()
    added = total(outline.products(parts))
    count = outline.count
    if not count:
        return PooledStatistics(0, None, None, (None,) * len(levels))
    ranges = _Ranges.of(parts, outline.edges(pairs_at_once))
    places = [Place.of(q, count) for q in levels]
    wanted = sorted({rank for place in places for rank in (place.below, place.above)})
    members = ranges.members(parts, wanted, pairs_at_once)
    found = tuple(place.between(members[place.below], members[place.above]) for place in places)
    return PooledStatistics(count, added / count, outline.maximum, found)


class _Outline:
    """What one pass over a sample tells: its size, its largest value, and a few of its values in rising order."""

    def __init__(self) -> None:
        self.count = 0
        self.maximum = -np.inf
        self._sampled: list[Floats] = []

    def products(self, parts: Parts) -> Iterator[Floats]:
        """Go through the sample, and yield what adds up to its sum."""
        for all_values, all_counts in parts():
            held = all_counts > 0
            values, counts = all_values[held], all_counts[held]
            self.count += int(np.sum(counts))
            self.maximum = max(self.maximum, float(np.max(values, initial=-np.inf)))
            self._sampled.append(np.sort(values)[_SAMPLED // 2 :: _SAMPLED].copy())
            yield from products(values, counts)

    def edges(self, pairs_at_once: int) -> Floats:
        """Return values that cut the pairs into ranges of about `pairs_at_once` or less; equal ones are not cut.

        Every part gave one value in so many of its own in rising order. So between two of all these values in rising
        order lie that many pairs, and at most as many more of each part.
        """
        ranked = np.sort(np.concatenate(self._sampled))
        step = max(1, pairs_at_once // _SAMPLED)
        return np.unique(ranked[step::step])


@dataclass(frozen=True)
class _Ranges:
    """How a sample is spread over ranges of values.

    Attributes
    ----------
    edges : array of shape (n_ranges - 1,), rising
        Where a range ends and the next begins; an edge belongs to the latter.
    starts : array of shape (n_ranges + 1,)
        How many members are below each range; last, how many there are.
    """

    edges: Floats
    starts: Integers

    @classmethod
    def of(cls, parts: Parts, edges: Floats) -> _Ranges:
        """Count the members in each range."""
        counted = np.zeros(len(edges) + 2, dtype=np.int64)
        for values, counts in parts():
            np.add.at(counted, 1 + np.searchsorted(edges, values, side="right"), counts)
        return cls(edges, np.cumsum(counted))

    def members(self, parts: Parts, places: Sequence[int], pairs_at_once: int) -> dict[int, float]:
        """Return the members at some places of the sample in rising order, counted from 0."""
        found: dict[int, float] = {}
        indices = np.searchsorted(self.starts, places, side="right") - 1
        for index in dict.fromkeys(indices.tolist()):
            start, end = self.starts[index : index + 2].tolist()
            here = [place for place in places if start <= place < end]
            pooled = self._pooled(parts, index, pairs_at_once)
            found.update(zip(here, pooled.at([place - start for place in here]), strict=True))
        return found

    def _pooled(self, parts: Parts, index: int, pairs_at_once: int) -> Pooled:
        """Pool the pairs of one range."""
        pooled = Pooled.of(np.empty(0), np.empty(0, dtype=np.int64))
        waiting: list[Pairs] = []
        size = 0
        for values, counts in parts():
            inside = np.searchsorted(self.edges, values, side="right") == index
            waiting.append((values[inside], counts[inside]))
            size += len(waiting[-1][0])
            # a value that is in many pairs is pooled before they become too many
            if size > pairs_at_once + len(pooled.values):
                pooled, waiting, size = _joined(pooled, waiting), [], 0
        return _joined(pooled, waiting)


def _joined(pooled: Pooled, waiting: list[Pairs]) -> Pooled:
    values = np.concatenate([pooled.values, *(values for values, _ in waiting)])
    return Pooled.of(values, np.concatenate([pooled.counts, *(counts for _, counts in waiting)]))
