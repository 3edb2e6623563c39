"""Where margins cross their limit, on curves whose crossing is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.decisions.crossing import Margins, crossing, falls, proposal

RATES = st.lists(st.floats(0.1, 100), min_size=2, max_size=8, unique_by=lambda rate: round(math.log(rate), 3))


@given(rates=RATES, at=st.floats(0.05, 200), slope=st.floats(0.1, 50), width=st.floats(0, 3))
def test_a_straight_line_is_inverted(rates: list[float], at: float, slope: float, width: float) -> None:
    """On a line in the logarithm of the rate, estimate and ends are those of the line, as far as rates are known."""
    points = [_on_line(rate, at, slope, width) for rate in rates]
    found = crossing(points)
    if not min(rates) <= at < max(rates):
        assert found is None or found.rate_rps == pytest.approx(at)
        return
    assert found is not None
    assert found.rate_rps == pytest.approx(at)
    for end, expected in (
        (found.low_rps, at / math.exp(width / slope)),
        (found.high_rps, at * math.exp(width / slope)),
    ):
        known = min(rates) <= expected < max(rates)
        assert end == pytest.approx(expected) if known else end is None or end == pytest.approx(expected)


def _on_line(rate: float, at: float, slope: float, width: float) -> Margins:
    value = slope * math.log(rate / at)
    return Margins(rate, value, value - width, value + width)


def test_the_first_of_several_crossings_counts() -> None:
    """A value that comes back within its limit does not undo the crossing."""
    points = [Margins(rate, value, value, value) for rate, value in ((1, -1), (2, 1), (4, -1), (8, 1))]
    found = crossing(points)
    assert found is not None
    assert found.rate_rps == pytest.approx(math.sqrt(2))
    assert falls(points)
    assert not falls(points[:2])


def test_the_end_of_the_steady_state() -> None:
    """Between a rate with a steady state and one without, the interval has both, and the estimate is between them."""
    found = crossing([Margins(1, -1, -1, -1), Margins(4, math.inf, math.inf, math.inf)])
    assert found is not None
    assert (found.low_rps, found.rate_rps, found.high_rps) == pytest.approx((1, 2, 4))


@given(low=st.floats(-5, 0), high=st.floats(1e-6, 1e9), factor=st.floats(1.001, 100))
def test_proposals_are_inside(low: float, high: float, factor: float) -> None:
    """The next rate is between both, so that a bracket gets smaller each time."""
    below, above = Margins(1, low, low, low), Margins(factor, high, high, high)
    assert 1 < proposal(below, above) < factor
