"""Estimates over replications: Hall's interval, and how much dependent observations are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from simqueue.statistics.dependence import PARTS, needed_for_mean, stretches
from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import mean_interval


def test_without_skewness_the_interval_is_students() -> None:
    """Values that lie evenly around their mean give the t-interval, also far from 0."""
    for values in ([1.0, 2.0, 3.0], [1e9 - 4, 1e9 + 4, 1e9], [7.0, 7.0, 7.0]):
        found, expected = estimate(values, 0.9), mean_interval(values, 0.9)
        assert (found.value, found.low, found.high) == pytest.approx((expected.mean, expected.low, expected.high))
        assert found.relative == pytest.approx(expected.relative)


def test_one_replication_has_no_interval() -> None:
    """One value has no spread: value and nothing else."""
    found = estimate([3.0])
    assert (found.value, found.low, found.high, found.error, found.relative) == (3.0, None, None, None, None)


@given(st.lists(st.floats(0.1, 1e3), min_size=3, max_size=40).filter(lambda values: np.std(values) > 1e-3))
def test_the_ends_are_those_of_halls_transformation(values: list[float]) -> None:
    """At both ends, t + g t²/(3 √n) + g² t³/(27 n) + g/(6 √n) is the quantile of Student's distribution."""
    n, g = len(values), float(stats.skew(values, bias=False))
    found = estimate(values)
    assert found.low is not None
    assert found.high is not None
    error = float(stats.sem(values))
    for end, sign in ((found.low, 1), (found.high, -1)):
        t = (np.mean(values) - end) / error
        scaled = t + g * t**2 / (3 * math.sqrt(n)) + g**2 * t**3 / (27 * n) + g / (6 * math.sqrt(n))
        assert scaled == pytest.approx(sign * stats.t.ppf(0.975, n - 1), rel=1e-6, abs=1e-6)


def test_skewed_means_are_covered_better_than_by_student() -> None:
    """Ten lognormal values (skewness 6): Student covers about 0.84 of 95 %, Hall at least 0.04 more; seed fixed."""
    samples = np.random.default_rng(11).lognormal(0, 1, (1500, 10))
    mean = math.exp(0.5)
    of_student = np.mean([abs((one := mean_interval(row)).mean - mean) <= (one.half_width or 0) for row in samples])
    ends = [estimate(row.tolist()) for row in samples]
    of_hall = np.mean([(one.low or 0) <= mean <= (one.high or 0) for one in ends])
    assert of_student < 0.87
    assert of_hall > of_student + 0.04


def test_sections_deviate_from_the_value_of_all() -> None:
    """With a value of its own the interval is around it, and its error is that of the deviations from it."""
    found = estimate([1.0, 2.0, 3.0], value=4.0)
    assert found.value == 4.0
    assert found.error == pytest.approx(math.sqrt((9 + 4 + 1) / 2 / 3))
    assert (found.low or 0) < 4.0 < (found.high or 0)


@pytest.mark.parametrize("phi", [0.0, 0.8, 0.95])
def test_an_autoregression_is_worth_its_share(phi: float) -> None:
    """Means of an AR(1) series have the variance of n (1 - φ) / (1 + φ) independent values."""
    rng = np.random.default_rng(5)
    shocks = rng.normal(size=(8000, 40))
    rows = np.zeros((8000, 40))
    rows[0] = shocks[0] / math.sqrt(1 - phi * phi)
    for i in range(1, len(rows)):
        rows[i] = phi * rows[i - 1] + shocks[i]
    assert stretches(list(rows.T)) == pytest.approx(8000 * (1 - phi) / (1 + phi), rel=0.25)


def test_a_run_of_one_wave_is_worth_a_few() -> None:
    """Where each part of a run has one value throughout, a run is worth as many values as it has parts."""
    waves = np.random.default_rng(1).normal(size=(60, PARTS)).repeat(100, axis=1)
    assert stretches(list(waves)) == pytest.approx(PARTS, rel=0.05)


def test_values_needed_grow_with_the_squared_skewness() -> None:
    """An exponential distribution has a skewness of 2 and needs 40 · 4; a symmetric one needs none."""
    assert needed_for_mean(np.random.default_rng(2).exponential(size=400_000)) == pytest.approx(160, rel=0.05)
    assert needed_for_mean(np.array([1.0, 2.0, 3.0])) == pytest.approx(0, abs=1e-9)
    assert needed_for_mean(np.ones(5)) == 0
    assert stretches([np.ones(5)]) == math.inf
