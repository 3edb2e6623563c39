"""Ticks of axes: as many as fit without touching, at least two, in plain numbers with thousands separators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from matplotlib.ticker import AutoLocator, Formatter, Locator, LogFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.ticker import ScalarFormatter as DefaultFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_MOST: Final = 9
_MOST_DECIMALS: Final = 9
_LETTER_POINTS: Final = 6.4
_LINE_POINTS: Final = 17.0
_MARGIN_POINTS: Final = 7.0
"""Width of a digit, height of a line, and the space between two labels, for the font of `figure_style`."""
_OVERHANG_POINTS: Final = 12.0
"""Labels at the ends of an axis reach beyond it by at most this, the space around them included."""
_NARROW: Final = 8.0
"""A logarithmic axis that spans a smaller factor has evenly spaced ticks, because few powers of ten lie on it."""


class FittingTicks(Locator):
    """Chooses the most ticks whose labels do not touch, on linear and logarithmic axes.

    Parameters
    ----------
    whole : bool
        Whether ticks are whole numbers.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._known: tuple[tuple[float, ...], list[float]] = ((), [])

    def __call__(self) -> Sequence[float]:
        """Return the ticks of the axis."""
        low, high = sorted(self._axis.get_view_interval())
        key = (low, high, _length(self._axis))  # a figure asks for its ticks many times before it is drawn
        if key != self._known[0]:
            self._known = (key, list(self.tick_values(low, high)))
        return self._known[1]

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks between two ends."""
        axis = self._axis
        choices = _candidates(vmin, vmax, log=axis.get_scale() == "log", whole=self._whole)
        inside = [[float(tick) for tick in ticks if vmin <= tick <= vmax] for ticks in choices]
        kept = [_without_overhang(axis, ticks, vmin, vmax) for ticks in inside]
        last = inside[0]
        for choice in (kept, inside):  # labels that reach beyond the axis are better than labels that touch
            several = [ticks for ticks in choice if len(ticks) >= 2]
            outermost = [[ticks[0], ticks[-1]] for ticks in reversed(several)]
            for ticks in (*several, *outermost):
                if _fit(axis, ticks, vmin, vmax):
                    return ticks
            last = max(outermost, key=lambda pair: pair[1] - pair[0], default=last)
        return last

    @property
    def _axis(self) -> Axis:
        axis: Any = self.axis
        return cast("Axis", axis)


class PlainNumbers(Formatter):
    """Writes numbers with thousands separators and with the decimals that they need, without exponents."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return one number."""
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return all numbers; those of a linear axis have the same number of decimals."""
        needed = [_decimals(value) for value in values]
        axis: Any = self.axis
        if axis is None or axis.get_scale() != "log":
            needed = [max(needed, default=0)] * len(needed)
        return [_plain(value, digits) for value, digits in zip(values, needed, strict=True)]


def plain_ticks(ax: Axes) -> None:
    """Give both axes fitting ticks in plain numbers; ticks and formats that have been chosen for an axis stay."""
    for axis in (ax.xaxis, ax.yaxis):
        if type(axis.get_major_locator()) in (AutoLocator, LogLocator):
            axis.set_major_locator(FittingTicks())
        if isinstance(axis.get_major_formatter(), DefaultFormatter | LogFormatter):
            axis.set_major_formatter(PlainNumbers())
        if axis.get_scale() == "log":
            axis.set_minor_locator(NullLocator())


def whole_ticks(axis: Axis) -> None:
    """Give an axis of counts whole numbers as ticks."""
    axis.set_major_locator(FittingTicks(whole=True))
    axis.set_major_formatter(PlainNumbers())


def _candidates(low: float, high: float, *, log: bool, whole: bool) -> Iterator[Sequence[float]]:
    """Yield choices of ticks, the densest first; a choice can have ticks outside the ends."""
    if log and high > _NARROW * low > 0:
        yield from _decades(low, high)
    for count in range(_MOST, 0, -1):
        yield MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10], integer=whole, min_n_ticks=1).tick_values(low, high)


def _decades(low: float, high: float) -> Iterator[Sequence[float]]:
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    for within in ((1, 2, 5), (1, 3), (1,)):
        yield [float(f"{part}e{power}") for power in range(first, last + 1) for part in within]
    for step in range(2, last - first + 1):
        yield [float(f"1e{power}") for power in range(first, last + 1) if power % step == 0]


def _fit(axis: Axis, ticks: Sequence[float], low: float, high: float) -> bool:
    """Return whether the labels of these ticks do not touch."""
    places, widths = _points(axis, ticks, low, high), _widths(axis, ticks)
    return len(ticks) <= _MOST and all(
        abs(places[i + 1] - places[i]) >= (widths[i] + widths[i + 1]) / 2 for i in range(len(ticks) - 1)
    )


def _widths(axis: Axis, ticks: Sequence[float]) -> list[float]:
    """Return the points that the labels of these ticks take along the axis, with the space around them."""
    formatter: Any = axis.get_major_formatter()
    return [
        _LETTER_POINTS * (len(text) - 0.5 * sum(map(text.count, ",."))) + _MARGIN_POINTS
        if _is_x(axis)
        else _LINE_POINTS
        for text in formatter.format_ticks(ticks)
    ]


def _without_overhang(axis: Axis, ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Return the ticks whose labels do not reach far beyond the ends of the axis, where the next axes can be."""
    places, widths, length = _points(axis, ticks, low, high), _widths(axis, ticks), _length(axis)
    return [
        tick
        for tick, place, width in zip(ticks, places, widths, strict=True)
        if place - width / 2 >= -_OVERHANG_POINTS and place + width / 2 <= length + _OVERHANG_POINTS
    ]


def _points(axis: Axis, ticks: Sequence[float], low: float, high: float) -> Any:
    """Return where ticks are along the axis, in points."""
    values = np.array([low, high, *ticks])
    start, end, *at = np.log(values) if axis.get_scale() == "log" else values
    return (np.array(at) - start) / ((end - start) or 1.0) * _length(axis)


def _is_x(axis: Axis) -> bool:
    return axis is axis.axes.xaxis


def _length(axis: Axis) -> float:
    """Return the length of an axis in points."""
    ax: Any = axis.axes
    box = ax.get_position()
    share, inches = (box.width, ax.figure.get_figwidth()) if _is_x(axis) else (box.height, ax.figure.get_figheight())
    return float(72 * share * inches)


def _decimals(value: float) -> int:
    """Return the fewest decimals that a tick needs, up to nine significant digits."""
    text = f"{float(f'{value:.9g}'):.{_MOST_DECIMALS + 3}f}"
    return min(len(text.rstrip("0").partition(".")[2]), _MOST_DECIMALS)


def _plain(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text
