"""The figure of a search for a system: what systems cost, and how well they keep their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from matplotlib.lines import Line2D

from simqueue.figures.canvas import LEVEL, MUTED, WIDTH, legend_below, level_label, log_y, new_figure, say_empty
from simqueue.figures.style import PALETTE, figure_style, literal
from simqueue.figures.ticks import plain_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KEEPS: Final[dict[str, Any]] = {"marker": "o", "markersize": 6, "linestyle": "none", "color": PALETTE[0]}
_FAILS: Final[dict[str, Any]] = {"marker": "x", "markersize": 6, "linestyle": "none", "color": MUTED}
_UNKNOWN: Final[dict[str, Any]] = {**_FAILS, "marker": "o", "markerfacecolor": "none"}
_BEST: Final[dict[str, Any]] = {"marker": "*", "markersize": 15, "linestyle": "none", "color": PALETTE[3]}

_LOOKS: Final = {True: ("keeps the limits", _KEEPS), False: ("does not", _FAILS), None: ("cannot be told", _UNKNOWN)}


@dataclass(frozen=True, slots=True)
class Point:
    """One system.

    Attributes
    ----------
    cost : float or None
    y : float or None
        Its metric, or its largest value over a limit; None: not known.
    low, high : float or None
        Ends of the interval of `y`.
    keeps : bool or None
        Whether it keeps the limits; None: it cannot be told.
    is_best : bool
    """

    cost: float | None
    y: float | None
    low: float | None
    high: float | None
    keeps: bool | None
    is_best: bool


def tuning_figure(points: Sequence[Point], *, cost: str, value: str, limit: float | None, title: str) -> Figure:
    """Return the figure: systems by cost and value, the answer with a star, and the front of those that keep limits.

    Parameters
    ----------
    points : sequence of Point
    cost, value : str
        Labels of the axes, with units.
    limit : float, optional
        A value that is marked, up to which limits are kept.
    title : str
    """
    shown = [one for one in points if one.cost is not None and one.y is not None]
    with figure_style():
        figure = new_figure(WIDTH, 4.2)
        ax = figure.subplots()
        ax.set(xlabel=cost, ylabel=value, title=literal(title))
        handles = []
        for kept, (label, look) in _LOOKS.items():
            group = [one for one in shown if one.keeps is kept and not one.is_best]
            if group:
                _draw(ax, group, look)
                handles.append(Line2D([], [], label=label, **look))
        if best := [one for one in shown if one.is_best]:
            _draw(ax, best, _BEST)
            handles.append(Line2D([], [], label="the answer", **_BEST))
        front = _front([one for one in shown if one.keeps])
        if len(front) > 1:
            ax.plot(*zip(*front, strict=True), color=PALETTE[0], linewidth=1, drawstyle="steps-post", zorder=1)
        if not shown:
            say_empty(ax, "no system was run")
        if limit is not None and shown:
            ax.axhline(limit, **LEVEL)
            handles.append(level_label("the limit"))
        if shown:
            log_y(ax)
            ax.set_xlim(left=0)
        plain_ticks(ax)
        legend_below(figure, handles)
    return figure


def _draw(ax: Axes, group: Sequence[Point], look: dict[str, Any]) -> None:
    ax.plot([one.cost or 0.0 for one in group], [one.y or 0.0 for one in group], **look)
    for one in group:
        if one.low is not None and one.high is not None and one.cost is not None:
            ax.vlines(one.cost, max(one.low, 1e-9), one.high, color=look["color"], linewidth=1.2)


def _front(points: Sequence[Point]) -> list[tuple[float, float]]:
    """Return cost and value of the systems of which none is both as cheap and better, from cheap to dear."""
    front: list[tuple[float, float]] = []
    known = [(one.cost, one.y) for one in points if one.cost is not None and one.y is not None]
    for cost, value in sorted(known):
        if not front or value < front[-1][1]:
            front.append((cost, value))
    return front
