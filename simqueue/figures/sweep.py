"""The figure of a sweep: a metric over the values of an axis, with intervals over replications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D

from simqueue.figures.canvas import legend_below, new_figure, say_empty
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.figures.ticks import plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SweepPoint = tuple[Any, float, float | None, float | None]
"""Value of the axis, mean of the metric, and the ends of its interval; None: there is none."""


def sweep_axes(lines: Mapping[str, Sequence[SweepPoint]], x: str, y: str, ax: Axes | None = None) -> Axes:
    """Draw one line per name, with bars for the intervals, and return the axes.

    Values of the axis that are no numbers stand side by side in the order in which they come.

    Parameters
    ----------
    lines : mapping of str to sequence of SweepPoint
    x, y : str
        Labels, with units.
    ax : Axes, optional
        By default those of a new figure.
    """
    styles = dict(zip(lines, line_styles(len(lines)), strict=True))
    texts = _texts(lines)
    with figure_style():
        own = ax is None
        axes = new_figure(8.0, 4.2).subplots() if ax is None else ax
        for name, points in lines.items():
            _draw(axes, points, styles[name], texts)
        if texts:
            axes.set_xticks(range(len(texts)), [literal(text) for text in texts])
        if not any(lines.values()):
            say_empty(axes, "the metric is undefined in all cells")
        axes.set(xlabel=literal(x), ylabel=literal(y))
        if not texts:
            plain_ticks(axes)
        handles = [Line2D([], [], label=literal(name), marker="o", **styles[name].look) for name in lines if name]
        if own:
            legend_below(axes.figure, handles)  # type: ignore[arg-type] # a new figure, and no part of one
        elif handles:
            axes.legend(handles=handles)
    return axes


def _texts(lines: Mapping[str, Sequence[SweepPoint]]) -> list[str]:
    """Return the values of the axis if they are no numbers, in order; else an empty list."""
    found = [point[0] for points in lines.values() for point in points]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return []
    return list(dict.fromkeys(map(str, found)))


def _draw(ax: Axes, points: Sequence[SweepPoint], style: LineStyle, texts: Sequence[str]) -> None:
    if not points:
        return
    x = [texts.index(str(at)) if texts else at for at, *_ in points]
    values = [value for _, value, _, _ in points]
    below = [0.0 if low is None else value - low for _, value, low, _ in points]
    above = [0.0 if high is None else high - value for _, value, _, high in points]
    ax.errorbar(x, values, yerr=(below, above), marker="o", markersize=4, capsize=3, **style.look)
