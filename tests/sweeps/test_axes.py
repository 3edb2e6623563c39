"""How values of axes are written, and which values they are."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import InputError
from simqueue.sweeps.axes import Range, Share, axis_of, parse_axis

TEXTS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))  # JSON writes others as two escapes
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
# a key that is longer than a line of 1,024 characters is none in YAML
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(lambda key: 0 < len(key) < 50), inner, max_size=3)
    ),
    max_leaves=5,
)
ENDS = st.decimals(-1000, 1000, places=3, allow_nan=False).map(str)


def listed(text: str, *, whole: bool = False) -> tuple[object, ...]:
    """Return the values of ``rate_rps=TEXT``."""
    return parse_axis(f"rate_rps={text}", "--grid").listed(whole=whole)


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_lists_come_back(values: list[object]) -> None:
    """A list that is written as JSON is the same values again, whatever they are."""
    texts = [json.dumps(value) for value in values]
    axis = parse_axis("k=" + ",".join(texts), "--grid")
    assert json.dumps(axis.listed(whole=False)) == json.dumps(values)
    assert axis_of("k", axis.written, "again") == axis_of("k", values, "again")


@given(ENDS, ENDS, st.integers(2, 30))
def test_linear_ranges_are_exact(low: str, high: str, count: int) -> None:
    """The values are the floats that are closest to the exact fractions, the ends included."""
    found = listed(f"{low}:{high}:{count}")
    width = (Fraction(high) - Fraction(low)) / (count - 1)
    assert found == tuple(float(Fraction(low) + i * width) for i in range(count))


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 30))
def test_logarithmic_ranges_have_equal_ratios(low: float, high: float, count: int) -> None:
    """Both ends are exact, and each value is the one before it times the same factor."""
    found = [float(str(value)) for value in listed(f"log:{low!r}:{high!r}:{count}")]
    assert (found[0], found[-1]) == (low, high)
    factor = (high / low) ** (1 / (count - 1))
    for before, after in pairwise(found):
        assert math.isclose(after, before * factor, rel_tol=1e-9)


@given(st.floats(0.001, 0.999999), st.integers(1, 50), st.integers(1, 50), st.booleans())
def test_draws_stay_inside(share: float, low: int, wide: int, log: bool) -> None:
    """What is drawn from a range lies in it; whole numbers are drawn up to both ends."""
    found = Range(Fraction(low), Fraction(low + wide), None, log)
    assert low <= found.at(share, whole=False) <= low + wide
    drawn = found.at(share, whole=True)
    assert isinstance(drawn, int)
    assert low <= drawn <= low + wide
    assert found.at(0.0, whole=True) == low
    assert found.at(1 - 2**-53, whole=True) == low + wide


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4:32:8", (4, 8, 12, 16, 20, 24, 28, 32)),
        ("32:4:2", (32, 4)),
        ("log:1:1000:4", (1, 10, 100, 1000)),
        ("64, 128", (64, 128)),
        ("h100-sxm,l40s", ("h100-sxm", "l40s")),
        ("'4:32:8'", ("4:32:8",)),
        ("[1,2],{a: b}", ([1, 2], {"a": "b"})),
        ("capacity:0.5,1", (Share(0.5), Share(1))),
        ("capacity:0.5:1:3", (Share(0.5), Share(0.75), Share(1.0))),
        ("capacity:log:0.25:1:3", (Share(0.25), Share(0.5), Share(1.0))),
    ],
)
def test_what_is_written(text: str, values: tuple[object, ...]) -> None:
    """Lists, ranges and shares of the capacity; a quoted text is never a range."""
    axis = parse_axis(f"rate_rps={text}", "--grid")
    assert axis.listed(whole=False) == values
    assert axis_of("rate_rps", axis.written, "again").listed(whole=False) == values


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("k=\udcff", "not text in UTF-8"),
        ("k", "write it as KEY=VALUES"),
        ("k=", "has no values"),
        ("k=1,", "a value is missing after the last ','"),
        ("k=[1", "not valid YAML"),
        ("a..b=1", "a key is empty"),
        ("k=4:x:3", "'x' as the end of a range: must be a finite number"),
        ("k=1e999:2:3", "'1e999' as the end"),
        ("k=1:2:1", "'1' as the number of values: must be a whole number from 2 to 100,000"),
        ("k=1:2:3:4", "write a range as LOW:HIGH:COUNT"),
        ("k=log:0:2:3", "the ends of a logarithmic range must be > 0"),
        ("k=2:1", "HIGH must be the larger one"),
        ("k=capacity:1,2", "is for rates of arrivals, whose key ends with rate_rps"),
        ("rate_rps=capacity:0:1:3", "0.0: a share of the capacity must be a number > 0"),
    ],
)
def test_what_is_wrong(text: str, says: str) -> None:
    """An axis that is not written as it must be is one line with the flag."""
    with pytest.raises(InputError, match=r"^--grid ") as error:
        parse_axis(text, "--grid")
    assert says in str(error.value)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize("values", [{"low": 1}, {1, 2}, []])
def test_values_from_python_have_an_order(values: object) -> None:
    """A mapping, a set and an empty list are no values of an axis."""
    with pytest.raises(InputError, match=r"^grid k: "):
        axis_of("k", values, "grid k")


def test_shares_are_written_once_before_the_list() -> None:
    """A list has shares of the capacity or rates, not both."""
    with pytest.raises(InputError, match="write 'capacity:' once, before all values"):
        axis_of("workload.arrivals.rate_rps", "6,capacity:0.5", "--grid")
