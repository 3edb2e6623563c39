"""Differences of two means by four methods, against other implementations and by hand."""

from __future__ import annotations

import math

import pytest
import scipy
from hypothesis import assume, given
from hypothesis import strategies as st

from simqueue.statistics.contrast import Known, contrast, method_of
from simqueue.statistics.estimate import estimate

from ..helpers.profiles import examples

NUMBERS = st.lists(st.floats(0, 1000).map(lambda x: round(x, 3)), min_size=2, max_size=8)


@examples(25, thorough=400)
@given(
    one=NUMBERS, other=NUMBERS, confidence=st.sampled_from([0.8, 0.95, 0.99]), factor=st.sampled_from([1, 1.05, 0.9])
)
def test_unpaired_intervals_are_those_of_welch(
    one: list[float], other: list[float], confidence: float, factor: float
) -> None:
    """The same as scipy's t-test with unequal variances; with a factor, of values multiplied by it."""
    multiplied = [factor * value for value in other]
    assume(min(len(set(one)), len(set(multiplied))) > 1)  # the other implementation warns of values without spread
    found = contrast(Known(tuple(one)), Known(tuple(other)), "unpaired", confidence, factor)
    theirs = scipy.stats.ttest_ind(one, multiplied, equal_var=False).confidence_interval(confidence)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-6, abs=1e-6)


def test_paired_intervals_are_those_of_the_differences() -> None:
    """Of the replications that both have."""
    one, other = Known((3.0, 5.0, 9.0, 100.0)), Known((1.0, 2.0, 2.0))
    assert method_of(one, other, same_seed=True) == "paired"
    assert contrast(one, other, "paired", factor=2) == estimate([1.0, 1.0, 5.0])


def test_single_runs_add_their_half_widths_as_independent_values_do() -> None:
    """3 and 4 are 5; with a factor, the second one is multiplied. At 99 % they are wider, as the normal quantile is."""
    one, other = Known((100.0,), 3.0), Known((90.0,), 4.0)
    assert method_of(one, other, same_seed=True) == "one run"
    found = contrast(one, other, "one run")
    assert (found.low, found.value, found.high) == pytest.approx((5, 10, 15))
    doubled = contrast(one, other, "one run", factor=2)
    assert doubled.half_width == pytest.approx(math.hypot(3, 8))
    wider = contrast(one, other, "one run", 0.99).half_width
    assert wider == pytest.approx(5 * 2.5758293 / 1.9599640, rel=1e-6)


def test_the_method_is_the_best_that_there_is() -> None:
    """Exact if nothing is random; pairs for one seed; else independent replications; else intervals of single runs."""
    many, single, run = Known((1.0, 2.0)), Known((1.0,)), Known((1.0,), 0.5)
    certain = Known((1.0,), exact=True)
    assert method_of(certain, certain, same_seed=False) == "exact"
    assert contrast(certain, certain, "exact").half_width == 0
    assert method_of(many, many, same_seed=False) == "unpaired"
    assert method_of(many, run, same_seed=True) == "one run"
    assert method_of(many, single, same_seed=True) == "none"
    assert contrast(many, single, "none").low is None
