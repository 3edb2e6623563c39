"""The distribution of the time between tokens as few exact points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simqueue as sq
from simqueue.results.stored import read_result
from simqueue.statistics.gapcurve import MOST_POINTS, gap_curve, thinned

PAIRS = st.lists(st.tuples(st.sampled_from([1.0, 2.0, 2.5, 7.0]), st.integers(0, 5)), max_size=12)


@given(st.lists(PAIRS, max_size=3))
def test_each_point_has_the_share_that_is_not_above_it(parts: list[list[tuple[float, int]]]) -> None:
    """Counted one by one over all parts, the share is the same; every value that occurs is a point."""
    arrays = [(np.array([v for v, _ in p], dtype=float), np.array([n for _, n in p], dtype=int)) for p in parts]
    sample = [value for part in parts for value, n in part for _ in range(n)]
    values, shares = gap_curve(lambda: arrays)
    assert values.tolist() == sorted(set(sample))
    assert shares.tolist() == pytest.approx([sum(one <= v for one in sample) / len(sample) for v in values])


def test_a_large_sample_has_few_points_and_an_exact_tail() -> None:
    """Of 300,000 values in three parts, points are few, shares exact, and the largest values are among them."""
    rng = np.random.default_rng(1)
    parts = [(rng.lognormal(size=100_000), rng.integers(1, 4, size=100_000)) for _ in range(3)]
    values, shares = gap_curve(lambda: parts)
    assert len(values) <= MOST_POINTS
    pooled = np.repeat(np.concatenate([v for v, _ in parts]), np.concatenate([n for _, n in parts]))
    ordered = np.sort(pooled)
    expected = np.searchsorted(ordered, values, side="right") / len(ordered)
    assert shares == pytest.approx(expected, abs=1e-12)
    assert values[-3:].tolist() == np.unique(pooled)[-3:].tolist()
    at = np.interp(0.999, shares, values)
    assert at == pytest.approx(np.quantile(pooled, 0.999), rel=0.01)


@given(st.integers(0, 10**7))
def test_thinned_points_include_both_ends(n: int) -> None:
    """Indices are in order, few, and those of the first and the last point are among them."""
    kept = thinned(n)
    assert len(kept) <= max(MOST_POINTS, 1)
    assert np.all(np.diff(kept) > 0)
    assert not n or (kept[0], kept[-1]) == (0, n - 1)


def test_a_saved_result_has_the_curve(tmp_path: Path) -> None:
    """Read back, values and shares are those of the run."""
    result = sq.run("module08")
    result.save(tmp_path / "r", figures=False)
    stored = read_result(tmp_path / "r")
    for policy in result.policies:
        for fresh, again in zip(result.gap_curve(policy), stored.gap_curve(policy), strict=True):
            assert len(fresh)
            assert fresh.tolist() == again.tolist()


def test_an_older_result_has_no_curve(tmp_path: Path) -> None:
    """A result of a version that did not save the curve can be read."""
    sq.run("module08").save(tmp_path / "r", figures=False)
    (tmp_path / "r" / "itl.parquet").unlink()
    values, shares = read_result(tmp_path / "r").gap_curve("static")
    assert len(values) == len(shares) == 0
