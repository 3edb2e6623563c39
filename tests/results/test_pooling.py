"""Pooled statistics range by range against those of the whole sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.results import pooling
from simqueue.results.metrics import Pooled
from simqueue.results.pooling import Pairs, PooledStatistics, pooled_percentiles, pooled_statistics

LEVELS = (0, 25, 50, 95, 99, 100)
Sample = list[tuple[float, int]]

# few values, so that equal ones lie in several parts, and neighbours that differ in their last bit
values = st.sampled_from([0.0, 1 / 3, math.nextafter(1 / 3, 1), 0.5, 1e-300, 7.25]) | st.floats(0, 1e6)
samples = st.lists(st.lists(st.tuples(values, st.integers(0, 5)), max_size=300), max_size=6)


def pairs(sample: Sample) -> Pairs:
    """Return a list of pairs as arrays."""
    return np.array([v for v, _ in sample], dtype=np.float64), np.array([c for _, c in sample], dtype=np.int64)


def statistics(parts: list[Pairs], pairs_at_once: int) -> PooledStatistics:
    """Return what `pooled_statistics` says; without a mean, the percentiles are the same."""
    found = pooled_statistics(lambda: iter(parts), LEVELS, pairs_at_once)
    assert pooled_percentiles(lambda: iter(parts), LEVELS, pairs_at_once) == found.percentiles
    return found


@given(samples, st.integers(1, 400))
def test_ranges_give_what_the_expanded_sample_gives(parts: list[Sample], pairs_at_once: int) -> None:
    """Count, maximum and percentiles equal numpy's of all members; the mean is the rounded exact sum over the count."""
    whole = [pair for part in parts for pair in part]
    members = np.repeat(*pairs(whole))
    found = statistics([pairs(part) for part in parts], pairs_at_once)
    assert found.count == len(members)
    if not len(members):
        assert (found.mean, found.maximum, found.percentiles) == (None, None, (None,) * len(LEVELS))
        return
    assert found.maximum == members.max()
    assert found.percentiles == tuple(np.percentile(members, q) for q in LEVELS)
    total = sum((Fraction(value) * count for value, count in whole), Fraction(0))
    assert found.mean == float(total) / len(members)


@given(samples, st.integers(1, 400))
def test_ranges_give_what_pooling_everything_gives(parts: list[Sample], pairs_at_once: int) -> None:
    """Every bit is that of `Pooled.of` the whole sample."""
    whole = Pooled.of(*pairs([pair for part in parts for pair in part]))
    found = statistics([pairs(part) for part in parts], pairs_at_once)
    assert (found.count, found.mean, found.maximum) == (whole.count, whole.mean(), whole.maximum)
    assert found.percentiles == tuple(whole.percentile(q) for q in LEVELS)


@pytest.mark.parametrize("shape", ["spread", "rising", "one value", "two clusters"])
def test_few_pairs_are_held_at_a_time(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However 200,000 values are spread over 100 parts, few more than the asked 20,000 pairs are pooled at a time."""
    luck = np.random.default_rng(5)
    drawn = {
        "spread": luck.random(200_000),
        "rising": np.arange(200_000) / 7,
        "one value": np.full(200_000, 0.25),
        "two clusters": np.where(luck.random(200_000) < 0.5, 1e-9 * luck.random(200_000), 5 + luck.random(200_000)),
    }[shape]
    sizes: list[int] = []

    def pool(values: np.ndarray, counts: np.ndarray) -> Pooled:
        sizes.append(len(values))
        return original(values, counts)

    original = Pooled.of
    monkeypatch.setattr(pooling.Pooled, "of", pool)

    def parts() -> Iterator[Pairs]:
        return ((part, np.ones(len(part), dtype=np.int64)) for part in np.split(drawn, 100))

    found = pooled_statistics(parts, LEVELS, 20_000)
    assert max(sizes) <= 30_000
    assert (found.count, found.maximum) == (200_000, drawn.max())
    assert found.percentiles == tuple(np.percentile(drawn, q) for q in LEVELS)
