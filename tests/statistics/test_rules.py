"""Warm-up, stopping and comparison: the rules on series with known results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simqueue.statistics import warmup
from simqueue.statistics.comparison import all_paired, holm, paired
from simqueue.statistics.stopping import checkpoints, deciding, largest_width


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


def test_checkpoints_grow_by_half() -> None:
    """From the least to the largest number of replications; there is always a way on from a small one."""
    assert checkpoints(10, 200) == (10, 15, 23, 35, 53, 80, 120, 180, 200)
    assert checkpoints(2, 4) == (2, 3, 4)
    assert checkpoints(7, 7) == (7,)


@given(st.integers(1, 50), st.integers(0, 300))
def test_two_checkpoints_decide(least: int, more: int) -> None:
    """The last two that were passed; one if no other number is allowed; none before."""
    sizes = checkpoints(least, least + more)
    assert sizes[0] == least
    assert sizes[-1] == least + more
    assert all(1 < after / before <= 2 for before, after in pairwise(sizes))
    needed = min(2, len(sizes))
    for i in range(len(sizes)):
        assert deciding(sizes, sizes[i]) == (sizes[i + 1 - needed : i + 1] if i + 1 >= needed else ())
    assert deciding(sizes, least - 1) == ()


def test_few_looks_cover_more_than_many() -> None:
    """Means of lognormal values until they are known to 15 %: stopping at any size covers less than at checkpoints.

    The interval is the mean ± two standard errors.
    """
    rng, sizes, n = np.random.default_rng(8), checkpoints(10, 400), np.arange(1, 401)
    many = few = 0
    for values in rng.lognormal(0, 0.5, (1000, 400)):
        means = np.cumsum(values) / n
        variances = np.maximum(np.cumsum(values**2) / n - means**2, 0)
        errors = np.sqrt(variances / np.maximum(n - 1, 1))
        covers, narrow = np.abs(means - np.exp(0.125)) <= 2 * errors, 2 * errors <= 0.15 * means
        many += covers[9 + int(np.argmax(narrow[9:]))]
        few += covers[next(size for size in sizes[1:] if all(narrow[one - 1] for one in deciding(sizes, size))) - 1]
    assert few > many + 10
    assert few >= 900  # what precision promises


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
