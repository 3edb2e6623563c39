"""Which cells a design has."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import InputError
from simqueue.sweeps.axes import Axis, axis_of, parse_axis
from simqueue.sweeps.design import SAMPLES, Design, points_of


def axes(**values: Any) -> tuple[Axis, ...]:
    """Return an axis for each keyword."""
    return tuple(axis_of(key, given, key) for key, given in values.items())


def cells(design: Design, *whole: str) -> tuple[tuple[Any, ...], ...]:
    """Return the cells of a design; axes named by `whole` have whole numbers."""
    return points_of(design, lambda axis: axis.key in whole).values


NUMBERS = st.lists(st.integers(0, 5), min_size=1, max_size=4)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_grid_is_the_product_without_duplicates(first: list[int], second: list[int], third: list[int]) -> None:
    """Each combination is one cell, in the order of the axes; the last axis changes fastest."""
    found = points_of(Design(axes(a=first, b=second, c=third)), lambda _: False)
    everything = list(product(first, second, third))
    assert found.values == tuple(dict.fromkeys(everything))
    repeated = len(everything) - len(found.values)
    assert [note.split()[0] for note in found.notes] == ([str(repeated)] if repeated else [])


def test_equal_numbers_are_one_cell_and_near_ones_are_not() -> None:
    """8, 8.0 and 8.00 are one value; 1 and true, 0.3 and 0.1 + 0.2 are two, however close."""
    assert cells(Design((parse_axis("k=8,8.0,8.00", "--grid"),))) == ((8,),)
    assert cells(Design(axes(k=[1, True, "1"]))) == ((1,), (True,), ("1",))
    assert cells(Design(axes(k=[0.3, 0.1 + 0.2]))) == ((0.3,), (0.1 + 0.2,))
    assert cells(Design(axes(k=[{"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}]))) == (({"a": 1, "b": [2.0]},),)


def test_parts_are_crossed() -> None:
    """Zipped axes stay together, rows of a table too, and each of them meets every value of the grid."""
    design = Design(axes(a=[1, 2]), axes(b=[3, 4], c=[5, 6]), axes(d=[7, 8]))
    pairs = [(a, b, c, d) for a in (1, 2) for b, c in ((3, 5), (4, 6)) for d in (7, 8)]
    assert cells(design) == tuple(pairs)


@pytest.mark.parametrize("sample", SAMPLES)
def test_draws_are_in_range_and_repeat(sample: Any) -> None:
    """All points lie in the ranges; the seed decides them."""
    drawn = axes(a="2:5", b="log:0.1:10", c="1:8", d=["x", "y"])
    design = Design(drawn=drawn, sample=sample, points=64)
    found = cells(design, "c")
    assert found == cells(design, "c")
    assert found != cells(Design(drawn=drawn, sample=sample, points=64, seed=1), "c")
    a, b, c, d = zip(*found, strict=True)
    assert all(2 <= value <= 5 for value in a)
    assert all(0.1 <= value <= 10 for value in b)
    assert set(c) == set(range(1, 9))
    assert set(d) == {"x", "y"}


def test_latin_hypercube_and_sobol_cover_each_axis() -> None:
    """Of n points, each of the n equal parts of every axis has exactly one."""
    for sample in ("lhs", "sobol"):
        found = np.array(cells(Design(drawn=axes(a="0:1", b="0:1", c="0:1"), sample=sample, points=32)))
        for column in found.T:
            assert sorted((column * 32).astype(int)) == list(range(32))


def test_sobol_says_what_numbers_are_better() -> None:
    """A number of points that is no power of 2 is a note, and no warning of a library."""
    found = points_of(Design(drawn=axes(a="0:1"), points=6), lambda _: False)
    assert found.notes == ("6 is no power of 2: 4 or 8 Sobol points cover the space more evenly",)


@pytest.mark.parametrize(
    ("design", "says"),
    [
        (Design(), "the sweep has no axes"),
        (Design(axes(a=[1]), axes(a=[2])), "the key has another axis already (a)"),
        (Design(zipped=axes(a=[1, 2], b=[1])), "b: 1 values; a has 2, and zipped axes must have as many"),
        (Design(axes(a="1:2")), "a: a range needs a number of values, such as 4:32:8"),
        (Design(drawn=axes(a="1:2")), "points: must be given"),
        (Design(drawn=axes(a="1:2"), points=0), "points = 0: must be a whole number from 1 to 100,000"),
        (Design(axes(a=[1]), points=3), "points = 3: is for axes to draw from (--draw), and there are none"),
        (Design(axes(a="1:2:1000", b="1:2:1000")), "1,000,000 cells; up to 100,000 are possible"),
        (Design(drawn=axes(a="1:2"), points=2, sample="lsh"), "unknown sample 'lsh'; did you mean 'lhs'?"),  # type: ignore[arg-type] # the point
    ],
)
def test_what_is_wrong(design: Design, says: str) -> None:
    """A design that is none is one line."""
    with pytest.raises(InputError) as error:
        points_of(design, lambda _: False)
    assert says in str(error.value)
