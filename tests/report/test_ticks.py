"""Ticks: at least two whose labels do not touch, in plain numbers, for any range."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.axis import Axis

from simqueue.figures.canvas import new_figure, settle
from simqueue.figures.style import figure_style
from simqueue.figures.ticks import PlainNumbers, whole_ticks

ENDS = st.tuples(st.floats(1e-2, 1e6), st.floats(1 + 1e-5, 1e6)).map(lambda pair: (pair[0], pair[0] * pair[1]))


def labels(
    low: float, high: float, *, log: bool, width: float = 3.0, vertical: bool = False
) -> list[tuple[float, str]]:
    """Return place and text of the labels that are drawn inside an axis with these ends."""
    with figure_style():
        figure = new_figure(width, 3.0)
        ax = figure.subplots()
        ax.set(**{("ylim" if vertical else "xlim"): (low, high)})
        if log:
            ax.set(**{("yscale" if vertical else "xscale"): "log"})
            ax.set(**{("ylim" if vertical else "xlim"): (low, high)})
        settle(figure)
        axis = ax.yaxis if vertical else ax.xaxis
        assert_apart(axis)
        places = [float(place) for place in axis.get_majorticklocs()]
        return list(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))


def assert_apart(axis: Axis) -> None:
    """The boxes of the labels, as drawn, do not touch."""
    figure = axis.axes.figure
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    for one, other in pairwise(boxes):
        assert not one.overlaps(other)


@settings(max_examples=20)
@given(ENDS, st.booleans(), st.booleans())
@example((499.5, 500.5), True, False)  # constant lengths on a logarithmic axis
@example((499.5, 500.5), False, False)
@example((5.9, 10.4), True, True)
@example((100000.625, 1500009.375), False, False)
@example((0.99999, 1.00001), True, False)
@example((368381.0, 148537481677.0), False, False)  # labels as long as half the axis
def test_any_axis_has_two_readable_labels(ends: tuple[float, float], log: bool, vertical: bool) -> None:
    """There are at least two labels, all different, without exponents, at the places they name, and apart."""
    found = labels(*ends, log=log, vertical=vertical)
    assert len(found) >= 2
    texts = [text for _, text in found]
    assert len(set(texts)) == len(texts)
    span = ends[1] - ends[0]
    for place, text in found:
        assert "e" not in text
        assert float(text.replace(",", "")) == pytest.approx(place, rel=1e-8, abs=1e-6 * span)
        assert ends[0] * (1 - 1e-9) <= place <= ends[1] * (1 + 1e-9)


def test_numbers_have_thousands_separators_and_the_decimals_they_need() -> None:
    """30,000 and not 30000; all ticks of a linear axis have the decimals of the one that needs most."""
    written = PlainNumbers()
    assert written.format_ticks([0, 10_000, 30_000]) == ["0", "10,000", "30,000"]
    assert written.format_ticks([499.75, 500, 500.25]) == ["499.75", "500.00", "500.25"]
    assert written.format_ticks([-0.0, 0.5]) == ["0.0", "0.5"]


def test_powers_of_ten_have_no_decimals_of_others() -> None:
    """On a logarithmic axis 1,000 stands beside 0.1."""
    texts = [text for _, text in labels(0.05, 20_000, log=True, width=8.0)]
    assert {"0.1", "1", "1,000", "10,000"} <= set(texts)


def test_counts_have_whole_ticks() -> None:
    """An axis from 0 to 2 requests has no tick between them."""
    with figure_style():
        figure = new_figure(4.0, 3.0)
        ax = figure.subplots()
        ax.set(ylim=(0, 2.1))
        whole_ticks(ax.yaxis)
        settle(figure)
        assert list(ax.yaxis.get_majorticklocs()) == [0, 1, 2]
