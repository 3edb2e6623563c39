"""The figure of a capacity under limits: goodput, attainment and limited values over the rate, the answer marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from simqueue.figures.canvas import MUTED, WIDTH, legend_below, new_figure, say_empty
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.figures.ticks import plain_ticks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
"""One for each condition."""
_ENOUGH: Final = 5
"""Fewer runs at a rate say where to look, and no more: they have no interval and are not joined by a line."""


class _Interval(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class _Size(Protocol):
    @property
    def requests(self) -> int: ...
    @property
    def replications(self) -> int: ...


class _Point(Protocol):
    @property
    def rate_rps(self) -> float: ...
    @property
    def size(self) -> _Size: ...
    @property
    def over_limits(self) -> Mapping[str, tuple[float, float | None, float | None]]: ...
    def interval(self, column: str, /) -> _Interval | None: ...


class _Answer(Protocol):
    @property
    def policy(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def capacity_rps(self) -> float | None: ...
    @property
    def low_rps(self) -> float | None: ...
    @property
    def high_rps(self) -> float | None: ...
    @property
    def points(self) -> Sequence[Any]: ...


def slo_capacity_figure(answers: Sequence[_Answer], title: str) -> Figure:
    """Return the figure: simulated rates with 95 % intervals; a line and a band mark the answer of each policy.

    Parameters
    ----------
    answers : sequence of Answer
        As `simqueue.decisions.answers` has them.
    title : str
        For example the scenario's name.
    """
    styles = dict(zip([one.policy for one in answers], line_styles(len(answers)), strict=True))
    chosen = {one.policy: _largest(one.points) for one in answers}
    conditions = list(dict.fromkeys(name for found in chosen.values() for one in found for name in one.over_limits))
    with figure_style():
        figure = new_figure(WIDTH, 4.2)
        goodput, attained, limits = figure.subplots(1, 3, sharex=True)
        for name, points in chosen.items():
            _draw(goodput, points, "request_goodput", styles[name])
            _draw(attained, points, "good_share", styles[name])
            for number, condition in enumerate(conditions):
                _draw_over_limit(limits, points, condition, styles[name], _MARKERS[number % len(_MARKERS)])
        for ax, label in ((goodput, "Goodput (requests/s)"), (attained, "Share of good requests")):
            ax.set_title(label)
            if not ax.lines:
                say_empty(ax, "no limits of single requests\nor of percentiles over them")
        goodput.set_ylim(0, None)
        attained.set_ylim(min(0.98, attained.get_ylim()[0]), 1.002)
        limits.set_title("Value over its limit")
        limits.axhline(1, color=MUTED, linewidth=1)
        if any(value > 0 for line in limits.lines for value in map(float, list(line.get_ydata())[1:])):
            limits.set_yscale("log")
        for ax in (goodput, attained, limits):
            ax.set(xlabel=f"rate ({answers[0].unit})", xlim=(0, None))
            for one in answers:
                _mark(ax, one, styles[one.policy])
            plain_ticks(ax)
        legend_below(figure, _legend(answers, styles, conditions))
        figure.suptitle(literal(title), x=0.01, ha="left")
    return figure


def _largest(points: Sequence[_Point]) -> list[_Point]:
    """Return the points in order of the rate; of each rate the one with the most requests."""
    best: dict[float, _Point] = {}
    for point in points:
        at = best.get(point.rate_rps)
        if at is None or _requests(point) > _requests(at):
            best[point.rate_rps] = point
    return [best[rate] for rate in sorted(best)]


def _requests(point: _Point) -> int:
    return point.size.requests * point.size.replications


def _draw(ax: Axes, points: Sequence[_Point], column: str, style: LineStyle) -> None:
    known = [(point, found) for point in points if (found := point.interval(column)) is not None]
    _draw_values(ax, [(point, (found.value, found.low, found.high)) for point, found in known], style, "o")


def _draw_over_limit(ax: Axes, points: Sequence[_Point], condition: str, style: LineStyle, marker: str) -> None:
    known = [(point, point.over_limits[condition]) for point in points if condition in point.over_limits]
    _draw_values(ax, [(point, values) for point, values in known if values[0] > 0], style, marker)


def _draw_values(
    ax: Axes, known: Sequence[tuple[_Point, tuple[float, float | None, float | None]]], style: LineStyle, marker: str
) -> None:
    """Draw values at rates: those of enough runs with intervals and joined by a line, others as faint points."""
    sure = [(point.rate_rps, *values) for point, values in known if point.size.replications >= _ENOUGH]
    rough = [(point.rate_rps, values[0]) for point, values in known if point.size.replications < _ENOUGH]
    if not sure:  # nothing is random, or the search ended early
        sure, rough = [(rate, value, None, None) for rate, value in rough], []
    _errorbars(ax, sure, style, marker)
    if rough:
        ax.plot(*zip(*rough, strict=True), marker=marker, markersize=4, linestyle="none", color=style.color, alpha=0.35)


def _errorbars(
    ax: Axes, rows: Sequence[tuple[float, float, float | None, float | None]], style: LineStyle, marker: str
) -> None:
    """Draw values at rates with their intervals."""
    if not rows:
        return
    rates, values = [row[0] for row in rows], [row[1] for row in rows]
    below = [0.0 if low is None else max(0.0, value - low) for _, value, low, _ in rows]
    above = [0.0 if high is None else max(0.0, high - value) for _, value, _, high in rows]
    ax.errorbar(rates, values, yerr=(below, above), marker=marker, markersize=4, capsize=2.5, **style.look)


def _mark(ax: Axes, one: _Answer, style: LineStyle) -> None:
    """Mark the answer: the knee, with its interval."""
    if one.capacity_rps is None:
        return
    ax.axvline(one.capacity_rps, color=style.color, linewidth=1.2, alpha=0.8, zorder=0)
    if one.low_rps is not None and one.high_rps is not None:
        ax.axvspan(one.low_rps, one.high_rps, color=style.color, alpha=0.18, linewidth=0, zorder=0)


def _legend(
    answers: Sequence[_Answer], styles: Mapping[str, LineStyle], conditions: Sequence[str]
) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for one in answers:
        said = "no rate" if one.capacity_rps is None else f"{one.capacity_rps:.3g} {one.unit}"
        handles.append(Line2D([], [], label=literal(f"{one.policy}: {said}"), **styles[one.policy].look))
    for number, condition in enumerate(conditions):
        marker = _MARKERS[number % len(_MARKERS)]
        handles.append(Line2D([], [], color=MUTED, marker=marker, linestyle="none", label=literal(condition)))
    few = Line2D([], [], color=MUTED, marker="o", linestyle="none", alpha=0.35, label=f"fewer than {_ENOUGH} runs")
    return [*handles, few, Patch(color=MUTED, alpha=0.3, label="capacity with its 95 % interval")]
