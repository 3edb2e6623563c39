"""Estimates over replications: the wider of two intervals, and what dependent observations are worth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from simqueue.statistics.dependence import PARTS, needed_for_mean, stretches
from simqueue.statistics.estimate import estimate, hall_ends
from simqueue.statistics.intervals import mean_interval
from simqueue.statistics.moments import skewness, standard_error, variance


def test_without_skewness_the_interval_is_students() -> None:
    """Values that lie evenly around their mean give the t-interval, also far from 0."""
    for values in ([1.0, 2.0, 3.0], [1e9 - 4, 1e9 + 4, 1e9], [7.0, 7.0, 7.0]):
        found, expected = estimate(values, 0.9), mean_interval(values, 0.9)
        assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
        assert found.relative == pytest.approx(expected.relative)


def test_one_replication_has_no_interval() -> None:
    """One value has no spread: value and nothing else."""
    found = estimate([3.0])
    assert (found.value, found.low, found.high, found.error, found.relative) == (3.0, None, None, None, None)


def halls(t: float, g: float, n: int) -> float:
    """Return a t-statistic of n values of skewness g on Hall's scale, where its distribution is nearly Student's."""
    return t + g * t**2 / (3 * math.sqrt(n)) + g**2 * t**3 / (27 * n) + g / (6 * math.sqrt(n))


@given(st.lists(st.floats(0.1, 1e3), min_size=3, max_size=40).filter(lambda values: np.std(values) > 1e-3))
def test_each_end_is_the_wider_of_students_and_halls(values: list[float]) -> None:
    """At both ends t is the quantile on Student's scale and beyond it on Hall's, or the other way round."""
    n = len(values)
    g = float(stats.skew(values, bias=False)) * min(1.0, (n - 2) / 8)  # few values hardly know their skewness
    found = estimate(values)
    assert found.low is not None
    assert found.high is not None
    error, quantile = float(stats.sem(values)), float(stats.t.ppf(0.975, n - 1))
    for end, sign in ((found.low, 1), (found.high, -1)):
        t = (np.mean(values) - end) / error
        reached = sorted([sign * t, sign * halls(t, g, n)])
        assert reached[0] == pytest.approx(quantile, rel=1e-6)
        assert reached[1] >= quantile * (1 - 1e-6)


def test_halls_ends_are_students_without_skewness_and_reach_further_on_the_long_side() -> None:
    """For skewness to the right, the truth is more likely above the mean than below."""
    t = float(stats.t.ppf(0.975, 19))
    assert hall_ends(t, 0.0, 20) == pytest.approx((t, t))
    below, above = hall_ends(t, 1.5, 20)
    assert below < t < above
    assert hall_ends(t, -1.5, 20) == pytest.approx((above, below))


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=30).filter(lambda values: np.std(values) > 1e-3))
def test_moments_are_those_of_scipy(values: list[float]) -> None:
    """Variance, standard error and adjusted skewness, computed another way."""
    assert variance(values) == pytest.approx(float(np.var(values, ddof=1)))
    assert standard_error(values) == pytest.approx(float(stats.sem(values)))
    assert skewness(values) == pytest.approx(float(stats.skew(values, bias=False)), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("draw", "mean", "student", "least"),
    [
        (lambda rng, shape: rng.lognormal(0, 1, shape), math.exp(0.5), 0.84, 0.90),
        (lambda rng, shape: rng.gamma(0.3, 1, shape), 0.3, 0.81, 0.92),
        (lambda rng, shape: rng.normal(1, 1, shape), 1.0, 0.95, 0.95),
    ],
    ids=["lognormal", "gamma", "normal"],
)
def test_means_are_covered_better_than_by_student(
    draw: Callable[..., NDArray[np.float64]], mean: float, student: float, least: float
) -> None:
    """Ten skewed values: Student's interval covers much less than 95 %, these hardly less; normal values: 95 %."""
    samples = draw(np.random.default_rng(11), (1500, 10))
    of_student = np.mean([abs((one := mean_interval(row)).value - mean) <= (one.half_width or 0) for row in samples])
    ends = [estimate(row.tolist()) for row in samples]
    covered = np.mean([(one.low or 0) <= mean <= (one.high or 0) for one in ends])
    assert of_student == pytest.approx(student, abs=0.03)
    assert covered >= least - 2 * math.sqrt(least * (1 - least) / len(samples))


def test_the_relative_width_is_that_of_the_longer_side() -> None:
    """Values with a long tail upwards have a longer side there; it is over the absolute value."""
    for sign in (1, -1):
        found = estimate([sign * one for one in (1.0, 1.0, 1.1, 1.2, 9.0)])
        sides = (found.value - (found.low or 0), (found.high or 0) - found.value)
        assert sides[sign == 1] > 1.5 * sides[sign != 1]
        assert found.relative == pytest.approx(max(sides) / abs(found.value))


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
