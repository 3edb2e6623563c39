"""Warm-up, stopping and comparison: the rules on series with known results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simqueue.statistics import warmup
from simqueue.statistics.comparison import all_paired, holm, paired
from simqueue.statistics.intervals import mean_interval
from simqueue.statistics.stopping import largest_width, look_ahead, precise_at


def mser_by_definition(series: np.ndarray) -> int:
    """Return the MSER-5 cut, straight from its formula."""
    means = series[: len(series) // 5 * 5].reshape(-1, 5).mean(axis=1)
    k = len(means)
    errors = [np.sum((means[d:] - means[d:].mean()) ** 2) / (k - d) ** 2 for d in range(k // 2 + 1)]
    return int(np.argmin(errors)) * 5


@pytest.mark.parametrize("seed", range(5))
def test_mser5_is_its_formula(seed: int) -> None:
    """The running sums give the cut of the definition on random series with a start that decays."""
    rng = np.random.default_rng(seed)
    series = 10 * np.exp(-np.arange(1000) / 60) + rng.normal(0, 1, 1000)
    found = warmup.mser5(series)
    assert found.cut == mser_by_definition(series)
    assert 50 < found.cut < 500
    assert found.conclusive
    assert found.n == 1000


def test_mser5_says_when_nothing_settles() -> None:
    """For a series that only rises, and one that is too short, the rule is inconclusive."""
    assert not warmup.mser5(np.arange(1000.0)).conclusive
    assert not warmup.mser5(np.ones(19)).conclusive


def test_mser5_cuts_nothing_from_noise() -> None:
    """A series without a start-up phase keeps most of itself."""
    series = np.random.default_rng(0).normal(0, 1, (50, 2000)).mean(axis=0)
    assert warmup.mser5(series).cut < 500


def test_the_averaged_series_skips_what_is_undefined() -> None:
    """Replications of unequal length are averaged as far as all reach; an undefined value counts for nothing."""
    found = warmup.averaged_series([[1.0, np.nan, 3.0], [3.0, 4.0, 5.0, 6.0]])
    assert found.tolist() == [2.0, 4.0, 4.0]


def widths_of(values: list[float]) -> Callable[[int], float | None]:
    """Return the relative half-width of Student's interval of the first n values."""
    return lambda n: mean_interval(values[:n]).relative


def test_stopping_waits_for_its_look_ahead() -> None:
    """A mean that is precise from the third value on is accepted after five more, and not before."""
    values = [100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 100.0, 100.0]
    widths = widths_of(values)
    assert precise_at(widths, 7, 0.05) is None
    assert precise_at(widths, 8, 0.05) == 3
    assert look_ahead(3) == 5
    assert look_ahead(400) == 20


def test_stopping_starts_again_after_a_surprise() -> None:
    """A value that widens the interval again within the look-ahead takes the decision back."""
    values = [100.0, 101.0, 99.0, 100.0, 180.0, *[100.0, 101.0, 99.0] * 30]
    first = precise_at(widths_of(values), len(values), 0.05)
    assert first is not None
    assert first > 5
    widths = [mean_interval(values[:n]).relative or 1 for n in range(first, first + look_ahead(first) + 1)]
    assert max(widths) <= 0.05
    assert (mean_interval(values[: first - 1]).relative or 1) > 0.05


@given(st.floats(0.001, 0.9))
def test_the_error_is_relative_to_the_true_value(wanted: float) -> None:
    """An estimate of 1 is within the error of each true value in its interval, and only just of the lowest."""
    width = largest_width(wanted)
    for true in np.linspace(1 - width, 1 + width, 11):
        assert abs(1 - true) / true <= wanted * (1 + 1e-12)
    assert width / (1 - width) == pytest.approx(wanted)


def test_holm_steps_down() -> None:
    """The worked example of Holm's rule: 0.01, 0.04, 0.03, 0.005 of four."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_common_random_numbers_narrow_a_difference() -> None:
    """Pairs that share their luck show a difference that the same values unpaired hide."""
    rng = np.random.default_rng(3)
    luck = rng.normal(100, 20, 10)
    base, other = luck.tolist(), (luck + 2 + rng.normal(0, 0.5, 10)).tolist()
    found = paired(other, base)
    assert found.verdict("higher") == "better"
    assert found.verdict("lower") == "worse"
    assert paired(other, base[::-1]).verdict("higher") == "no difference shown"


def test_verdicts_of_edge_cases() -> None:
    """Equal values are the same; one pair is too few; a table is corrected for its length."""
    assert paired([1.0, 2.0], [1.0, 2.0]).verdict("higher") == "the same"
    assert paired([1.0], [2.0]).verdict("higher") == "too few replications"
    rng = np.random.default_rng(5)
    base = rng.normal(0, 1, 8)
    table = {i: ((base + rng.normal(0.8, 1, 8)).tolist(), base.tolist()) for i in range(6)}
    for found in all_paired(table).values():
        assert found.adjusted_p is not None
        assert found.p_value is not None
        assert found.adjusted_p >= found.p_value


@given(st.lists(st.sampled_from([-0.2, 0.1, 0.3, 0.4, 4.0]), min_size=2, max_size=12))
@example([0.4, 0.1, 0.4, 0.4])  # p = 0.02, and skewed so that the interval begins below 0
def test_a_verdict_agrees_with_the_interval_beside_it(differences: list[float]) -> None:
    """A policy is better or worse only if the interval of its difference, which allows for skewness, leaves out 0."""
    found = paired([10 + one for one in differences], [10.0] * len(differences))
    if found.verdict("higher") in ("better", "worse"):
        assert found.difference.low is not None
        assert found.difference.high is not None
        assert not found.difference.low <= 0 <= found.difference.high
