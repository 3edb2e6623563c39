"""Ratios of means with their intervals, what common random numbers gave, and intervals of whole tables."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.statistics.comparison import all_paired, paired
from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import Estimate, mean_interval
from simqueue.statistics.ratio import ratio_of_means

from ..helpers.profiles import examples

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]
POSITIVE = st.lists(st.tuples(*[st.floats(0.01, 100)] * 2), min_size=3, max_size=12)


def shared_lognormal(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs that share their luck; the true ratio of means is 2."""
    luck, own = rng.normal(0, 0.6, n), rng.normal(0, 0.3, n)
    return 2 * np.exp(luck + own), np.exp(luck - own)


def added(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return exponential values and those with an exponential delay more: the true ratio of means is 2."""
    base = rng.exponential(1, n)
    return base + rng.exponential(1, n), base


def amplified(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a value and its square plus one, as waits grow faster than loads do: the ratio is (12 + 1) / (3 + 1)."""
    base = rng.gamma(3, 1, n)
    return (base**2 + 1) * 8 / 13, base + 1


def test_a_ratio_is_that_of_the_means() -> None:
    """The mean of 1 and 9 is five times that of 1 and 1; the mean of the logarithms would say 3."""
    found = ratio_of_means([1.0, 9.0], [1.0, 1.0])
    assert found is not None
    assert found.value == 5


def test_a_ratio_that_never_varies_is_known() -> None:
    """Twice the baseline in every pair is a ratio of exactly 2."""
    found = paired([2.0, 4.0, 8.0], [1.0, 2.0, 4.0]).ratio
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))


def test_ratios_that_are_undefined() -> None:
    """There is no ratio to a mean of 0 or of negative values, and no interval if one replication makes the mean."""
    assert ratio_of_means([1.0, 1.0], [0.0, 0.0]) is None
    assert ratio_of_means([-1.0, 2.0], [1.0, 1.0]) is None
    for values, baseline in (([0.0, 1.0], [1.0, 1.0]), ([1.0], [2.0])):
        found = ratio_of_means(values, baseline)
        assert found is not None
        assert (found.value, found.low, found.high) == (0.5, None, None)


@given(POSITIVE, st.floats(0.001, 1000))
def test_a_ratio_has_no_unit_and_no_direction(pairs: list[tuple[float, float]], factor: float) -> None:
    """Another unit changes nothing, and exchanging the two turns the ratio and its interval over."""
    above, below = map(list, zip(*pairs, strict=True))
    found = ratio_of_means(above, below)
    scaled = ratio_of_means([factor * value for value in above], [factor * value for value in below])
    turned = ratio_of_means(below, above)
    assert found is not None
    assert scaled is not None
    assert turned is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    # a sum less one of its terms is rounded, and skewness divides by the spread: nearly equal pairs have few digits
    near = {"rel": 1e-4, "abs": 0}
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx((found.value, found.low, found.high), **near)
    assert (1 / turned.value, turned.high and 1 / turned.high) == pytest.approx((found.value, found.low), **near)


@pytest.mark.parametrize("replications", [5, 10])
@pytest.mark.parametrize("draw", [shared_lognormal, added, amplified])
def test_the_interval_of_a_ratio_covers(draw: Draw, replications: int) -> None:
    """A nominal 95 % interval contains the true ratio in 93 % of the cases, though values are skewed."""
    rng = np.random.default_rng(8)
    hits, tries = 0, 1000
    for _ in range(tries):
        found = ratio_of_means(*map(np.ndarray.tolist, draw(rng, replications)))
        assert found is not None
        hits += found.low is not None and found.high is not None and found.low <= 2 <= found.high
    assert hits / tries >= 0.93 - 2 * (0.93 * 0.07 / tries) ** 0.5


def test_the_variance_factor_is_that_of_independent_traffic() -> None:
    """The factor is the variance that the difference would have without pairing over what it has."""
    rng = np.random.default_rng(4)
    luck = rng.normal(10, 3, 200)
    values, base = luck + rng.normal(0, 1, 200), luck + rng.normal(0, 1, 200)
    factor = paired(values.tolist(), base.tolist()).variance_factor
    assert factor == pytest.approx((np.var(values) + np.var(base)) / np.var(values - base))
    assert factor == pytest.approx(10, rel=0.2)  # (9 + 1 + 9 + 1) / (1 + 1)
    assert paired(values.tolist(), rng.permutation(base).tolist()).variance_factor == pytest.approx(1, rel=0.2)
    assert paired([2.0, 3.0], [1.0, 2.0]).variance_factor is None


def test_simultaneous_intervals_are_bonferronis() -> None:
    """With five rows each simultaneous interval is one of 99 %; those of the rows stay at 95 %."""
    rng = np.random.default_rng(1)
    pairs = {row: (rng.exponential(2, 10).tolist(), rng.exponential(1, 10).tolist()) for row in range(5)}
    for row, found in all_paired(pairs).items():
        differences = np.subtract(*pairs[row]).tolist()
        for one, confidence in ((found.difference, 0.95), (found.simultaneous_difference, 0.99)):
            assert one == estimate(differences, confidence)
            assert (one.high or 0) - (one.low or 0) >= 2 * (mean_interval(differences, confidence).half_width or 0)
        assert found.simultaneous_ratio is not None
        assert found.ratio is not None
        assert (found.simultaneous_ratio.low or 0) < (found.ratio.low or 0)


def test_simultaneous_intervals_hold_at_once() -> None:
    """In 95 % of the tables all of six intervals contain their true differences; of the rows' own ones, in fewer."""
    rng = np.random.default_rng(2)
    together = own = 0
    for _ in range(300):
        base = rng.normal(0, 1, 8)
        pairs = {row: ((base + row + rng.normal(0, 1, 8)).tolist(), base.tolist()) for row in range(6)}
        found = all_paired(pairs)
        together += all(_holds(one.simultaneous_difference, row) for row, one in found.items())
        own += all(_holds(one.difference, row) for row, one in found.items())
    assert together / 300 >= 0.95 - 2 * (0.95 * 0.05 / 300) ** 0.5
    assert own / 300 < 0.9


def _holds(found: Estimate, true: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= true <= found.high


@given(
    pairs=st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=3, max_size=12),
    skewed=st.floats(1, 1e4),
)
@examples(60, 200)
def test_the_intervals_of_ratio_and_difference_agree(pairs: list[tuple[float, float]], skewed: float) -> None:
    """Where the one excludes no difference, the other excludes a ratio of 1 on that side, or ends there."""
    values, baseline = ([pair[side] * (skewed if i == 0 else 1) for i, pair in enumerate(pairs)] for side in (0, 1))
    found = paired(values, baseline)
    rows = ((found.difference, found.ratio), (found.simultaneous_difference, found.simultaneous_ratio))
    for difference, ratio in rows:
        if ratio is None or ratio.low is None or ratio.high is None:
            continue
        assert ratio.low <= ratio.value <= ratio.high
        if difference.low is not None and difference.low > 0:
            assert ratio.low >= 1
        if difference.high is not None and difference.high < 0:
            assert ratio.high <= 1
