"""Figures of where a claim holds: maps of verdicts over two parameters, and lines with the claimed band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import seaborn as sns
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from simqueue.figures.canvas import legend_below, log_y, mark_cut, new_figure, number, say_empty
from simqueue.figures.style import figure_style, line_styles, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.style import LineStyle

_SAID: Final[Mapping[str, tuple[str, str, str]]] = {
    "yes": ("the claim holds", "", "white"),
    "unclear": ("unclear: the interval includes both", "///", "black"),
    "no": ("the claim does not hold", "", "black"),
}
Point = tuple[float, float, float | None]
"""Position on the x axis, mean, and half-width of its interval or None."""


@dataclass(frozen=True, slots=True)
class VerdictMap:
    """Verdicts over two parameters.

    Attributes
    ----------
    title, xlabel, ylabel : str
    columns, rows : sequence of str
        Values of the parameters; rows from the top.
    cells : sequence of sequence of (str, str)
        By row and column: the text, and "yes", "no" or "unclear".
    """

    title: str
    xlabel: str
    ylabel: str
    columns: Sequence[str]
    rows: Sequence[str]
    cells: Sequence[Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class BandPanel:
    """Lines with intervals, and the band in which they lie according to a claim.

    Attributes
    ----------
    title, ylabel : str
    series : mapping of name to points
    band : (float, float)
        Lower and upper end. A lower end of 0 is drawn at the bottom of the axes.
    """

    title: str
    ylabel: str
    series: Mapping[str, Sequence[Point]]
    band: tuple[float, float]


def verdict_maps(maps: Sequence[VerdictMap]) -> Figure:
    """Return the maps one below the other; each cell has the colour of its verdict and its text."""
    fills = _fills()
    with figure_style():
        figure = new_figure(10, 0.9 + sum(1.2 + 0.55 * len(one.rows) for one in maps))
        axes = figure.subplots(len(maps), 1, squeeze=False, height_ratios=[len(one.rows) + 1.5 for one in maps])
        for ax, one in zip(axes[:, 0], maps, strict=True):
            _draw_map(ax, one)
        legend_below(figure, [_patch(holds, fills[holds]) for holds in _SAID])
    return figure


def band_figure(panels: Sequence[BandPanel], *, xlabel: str, claimed: str) -> Figure:
    """Return the panels side by side over a logarithmic x axis. Bars are intervals; an arrow marks one that reaches 0.

    Parameters
    ----------
    panels : sequence of BandPanel
        All must have the same names of series.
    xlabel : str
    claimed : str
        Label of the band.
    """
    names = list(panels[0].series) if panels else []
    styles = line_styles(len(names))
    with figure_style():
        figure = new_figure(12, 4.8)
        axes = figure.subplots(1, max(len(panels), 1), squeeze=False)[0]
        for ax, panel in zip(axes, panels, strict=False):
            _draw_band(ax, panel, styles)
            ax.set(xlabel=xlabel, ylabel=panel.ylabel, title=panel.title)
        handles: list[Patch | Line2D] = [
            Line2D([], [], marker="o", markersize=4, label=literal(name), **s.look)
            for name, s in zip(names, styles, strict=True)
        ]
        legend_below(figure, [*handles, Patch(facecolor="0.85", edgecolor="0.5", label=claimed)])
    return figure


def _fills() -> dict[str, tuple[float, float, float]]:
    palette = sns.color_palette("colorblind")
    pale = tuple(1 - 0.4 * (1 - part) for part in palette[1])
    return {"yes": palette[0], "unclear": (0.88, 0.88, 0.88), "no": (pale[0], pale[1], pale[2])}


def _patch(holds: str, fill: tuple[float, float, float]) -> Patch:
    label, hatch, _ = _SAID[holds]
    return Patch(facecolor=fill, hatch=hatch, edgecolor="0.65", label=label)


def _draw_map(ax: Axes, one: VerdictMap) -> None:
    fills = _fills()
    for y, row in enumerate(one.cells):
        for x, (text, holds) in enumerate(row):
            _, hatch, ink = _SAID[holds]
            ax.add_patch(Rectangle((x, y), 1, 1, facecolor=fills[holds], hatch=hatch, edgecolor="0.65", linewidth=0.8))
            ground = {"facecolor": fills[holds], "edgecolor": "none", "pad": 1.2}
            ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=8, color=ink, bbox=ground)
    ax.set(xlim=(0, len(one.columns)), ylim=(len(one.rows), 0), title=literal(one.title))
    ax.set(xlabel=one.xlabel, ylabel=one.ylabel)
    ax.set_xticks([i + 0.5 for i in range(len(one.columns))], list(one.columns))
    ax.set_yticks([i + 0.5 for i in range(len(one.rows))], list(one.rows))
    ax.grid(visible=False)


def _draw_band(ax: Axes, panel: BandPanel, styles: Sequence[LineStyle]) -> None:
    drawn = [(points, style) for points, style in zip(panel.series.values(), styles, strict=True) if points]
    if not drawn:
        say_empty(ax, "undefined")
        return
    everything = [point for points, _ in drawn for point in points]
    least = min(mean for _, mean, _ in everything)
    for points, style in drawn:
        _draw_points(ax, points, style, floor=0.5 * least)
    log_y(ax)
    _shade(ax, panel.band, everything)
    for points, style in drawn:
        mark_cut(ax, [(x, start) for x, start, _ in _intervals(points)], style.color)
    _log_ticks(ax, everything)


def _shade(ax: Axes, band: tuple[float, float], points: Sequence[Point]) -> None:
    """Shade the claimed band, and fit the y axis to it and to the points."""
    low, high = band
    bottom = 0.55 * min(low or high, *(mean for _, mean, _ in points))
    ax.axhspan(max(low, bottom), high, facecolor="0.85", edgecolor="0.5", zorder=0)
    ax.set_ylim(bottom, 1.3 * max(high, *(mean + (width or 0.0) for _, mean, width in points)))


def _log_ticks(ax: Axes, points: Sequence[Point]) -> None:
    """Make the x axis logarithmic, with a tick at each position."""
    ticks = sorted({x for x, _, _ in points})
    ax.set_xscale("log")
    ax.set_xticks(ticks, [number(tick) for tick in ticks])
    ax.minorticks_off()


def _draw_points(ax: Axes, points: Sequence[Point], style: LineStyle, *, floor: float) -> None:
    """Draw means as a line and their intervals as bars, which end at `floor` at the lowest."""
    ax.plot([x for x, _, _ in points], [mean for _, mean, _ in points], marker="o", markersize=4, **style.look)
    for x, start, end in _intervals(points):
        ax.vlines(x, max(start, floor), end, color=style.color, linewidth=1.2)


def _intervals(points: Sequence[Point]) -> list[tuple[float, float, float]]:
    """Return position, lower and upper end of each interval."""
    return [(x, mean - width, mean + width) for x, mean, width in points if width]
