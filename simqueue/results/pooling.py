"""Statistics of a sample that need not fit into memory, bit-identical to those of the whole sample.

The sample is a sequence of parts, each with values and their counts, and can be read several times. The first pass
computes the sum, the maximum and a small sample of the values, which gives the edges of many ranges. The second pass
counts the observations in each range, so that the range of each percentile is known. The last passes hold only the
pairs of such a range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simqueue.results.metrics import Floats, Integers, Pooled, Position, products, total

Pairs = tuple[Floats, Integers]
Parts = Callable[[], Iterable[Pairs]]
"""Returns the parts of a sample, from the start at each call: finite values and their counts (>= 0)."""

PAIRS_AT_ONCE: Final = 100_000
_SAMPLED: Final = 64
"""One value in this many is sampled to choose the ranges."""


@dataclass(frozen=True, slots=True)
class PooledStatistics:
    """Statistics of a sample; None if it is empty.

    Attributes
    ----------
    count : int
    mean, maximum : float or None
    percentiles : tuple of float or None
        In the order in which they were requested.
    """

    count: int
    mean: float | None
    maximum: float | None
    percentiles: tuple[float | None, ...]


def pooled_statistics(parts: Parts, levels: Sequence[float], pairs_at_once: int = PAIRS_AT_ONCE) -> PooledStatistics:
    """Return the same statistics as `Pooled.of` for the whole sample, with few pairs in memory.

    Parameters
    ----------
    parts : callable
        The sample.
    levels : sequence of float
        The percentiles to compute, 0 to 100.
    pairs_at_once : int
        Approximate number of pairs in memory, in addition to one part; it is exceeded if there are many small parts.
    """
    outline = _Outline()
    added = total(product for pairs in outline.passed(parts) for product in products(*pairs))
    if not outline.count:
        return PooledStatistics(0, None, None, (None,) * len(levels))
    found = _percentiles(parts, outline, levels, pairs_at_once)
    return PooledStatistics(outline.count, added / outline.count, outline.maximum, found)


def pooled_percentiles(
    parts: Parts, levels: Sequence[float], pairs_at_once: int = PAIRS_AT_ONCE
) -> tuple[float | None, ...]:
    """Return the percentiles of `pooled_statistics` alone; the exact sum of a mean takes most of its time."""
    outline = _Outline()
    for _ in outline.passed(parts):
        pass
    return _percentiles(parts, outline, levels, pairs_at_once) if outline.count else (None,) * len(levels)


def _percentiles(parts: Parts, outline: _Outline, levels: Sequence[float], pairs_at_once: int) -> tuple[float, ...]:
    ranges = _Ranges.of(parts, outline.edges(pairs_at_once))
    positions = [Position.of(q, outline.count) for q in levels]
    ranks = sorted({rank for position in positions for rank in (position.below, position.above)})
    values = ranges.values_at(parts, ranks, pairs_at_once)
    return tuple(position.between(values[position.below], values[position.above]) for position in positions)


class _Outline:
    """The result of one pass over a sample: its size, its largest value, and a small sample of its values."""

    def __init__(self) -> None:
        self.count = 0
        self.maximum = -np.inf
        self._sampled: list[Floats] = []

    def passed(self, parts: Parts) -> Iterator[Pairs]:
        """Go through the sample and yield the pairs of each part that have a count."""
        for all_values, all_counts in parts():
            held = all_counts > 0
            values, counts = all_values[held], all_counts[held]
            self.count += int(np.sum(counts))
            self.maximum = max(self.maximum, float(np.max(values, initial=-np.inf)))
            self._sampled.append(np.sort(values)[_SAMPLED // 2 :: _SAMPLED].copy())
            yield values, counts

    def edges(self, pairs_at_once: int) -> Floats:
        """Return values that divide the pairs into ranges of at most about `pairs_at_once`; equal values stay together.

        Each part contributes one in `_SAMPLED` of its sorted values. So between two neighbours of all sampled values
        there are about `_SAMPLED` pairs, and at most as many more per part.
        """
        ranked = np.sort(np.concatenate(self._sampled))
        step = max(1, pairs_at_once // _SAMPLED)
        return np.unique(ranked[step::step])


@dataclass(frozen=True)
class _Ranges:
    """The number of observations in ranges of values.

    Attributes
    ----------
    edges : array of shape (n_ranges - 1,), ascending
        Boundaries between the ranges; an edge belongs to the range above it.
    starts : array of shape (n_ranges + 1,)
        Number of observations below each range, and the size of the sample as the last element.
    """

    edges: Floats
    starts: Integers

    @classmethod
    def of(cls, parts: Parts, edges: Floats) -> _Ranges:
        """Count the observations in each range."""
        counted = np.zeros(len(edges) + 2, dtype=np.int64)
        for values, counts in parts():
            np.add.at(counted, 1 + np.searchsorted(edges, values, side="right"), counts)
        return cls(edges, np.cumsum(counted))

    def values_at(self, parts: Parts, ranks: Sequence[int], pairs_at_once: int) -> dict[int, float]:
        """Return the values with these ranks in ascending order, counted from 0."""
        found: dict[int, float] = {}
        indices = np.searchsorted(self.starts, ranks, side="right") - 1
        for index in dict.fromkeys(indices.tolist()):
            start, end = self.starts[index : index + 2].tolist()
            here = [rank for rank in ranks if start <= rank < end]
            pooled = self._pooled(parts, index, pairs_at_once)
            found.update(zip(here, pooled.at([rank - start for rank in here]), strict=True))
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
            # A value that occurs in many pairs is pooled before there are too many of them.
            if size > pairs_at_once + len(pooled.values):
                pooled, waiting, size = _joined(pooled, waiting), [], 0
        return _joined(pooled, waiting)


def _joined(pooled: Pooled, waiting: list[Pairs]) -> Pooled:
    values = np.concatenate([pooled.values, *(values for values, _ in waiting)])
    return Pooled.of(values, np.concatenate([pooled.counts, *(counts for _, counts in waiting)]))
