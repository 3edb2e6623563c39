"""The figure of the capacity law: throughput, TPOT and TTFT over the arrival rate, in theory and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from matplotlib.lines import Line2D

from simqueue.figures.canvas import legend_below, new_figure
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS: Final = {
    "request_throughput": "Throughput (requests/s)",
    "mean_tpot_ms": "Mean TPOT (ms)",
    "mean_ttft_ms": "Mean TTFT (ms)",
}


class _Curve(Protocol):
    @property
    def policy(self) -> str: ...
    @property
    def capacity_rps(self) -> float: ...
    @property
    def rates_rps(self) -> tuple[float, ...]: ...
    @property
    def values(self) -> Mapping[str, tuple[float | None, ...]]: ...


class _Interval(Protocol):
    @property
    def mean(self) -> float: ...
    @property
    def half_width(self) -> float | None: ...


class _Point(Protocol):
    @property
    def policy(self) -> str: ...
    @property
    def rate_rps(self) -> float: ...
    @property
    def values(self) -> Mapping[str, _Interval | None]: ...


def capacity_figure(curves: Sequence[_Curve], points: Sequence[_Point], title: str) -> Figure:
    """Return the figure: lines for the capacity law, points with 95 % intervals for the simulation.

    Parameters
    ----------
    curves, points : sequences
        As returned by `simqueue.experiment.rates`.
    title : str
        For example the scenario's name.
    """
    styles = dict(zip([curve.policy for curve in curves], line_styles(len(curves)), strict=True))
    with figure_style():
        figure = new_figure(14, 4.6)
        for ax, (metric, label) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
            _draw_curves(ax, curves, metric, styles)
            _draw_points(ax, points, metric, styles)
            if not ax.containers and not _estimated(curves, metric):
                ax.text(0.5, 0.5, "no estimate", transform=ax.transAxes, ha="center", va="center", color="0.4")
            ax.set(xlabel="arrival rate (requests/s)", title=label, xlim=(0, None))
            if metric == "request_throughput":
                ax.set_ylim(0, None)
            else:
                ax.set_yscale("log")
        handles = [Line2D([], [], label=literal(name), **style.look) for name, style in styles.items()]
        handles.append(Line2D([], [], color="0.4", linestyle=":", label="capacity"))
        if points:
            handles.append(Line2D([], [], color="0.4", marker="o", linestyle="none", label="simulated, 95 % interval"))
        legend_below(figure, handles)
        figure.suptitle(literal(title), x=0.01, ha="left")
    return figure


def _estimated(curves: Sequence[_Curve], metric: str) -> bool:
    return any(value is not None for curve in curves for value in curve.values[metric])


def _draw_curves(ax: Axes, curves: Sequence[_Curve], metric: str, styles: Mapping[str, LineStyle]) -> None:
    for curve in curves:
        style = styles[curve.policy]
        known = [(r, v) for r, v in zip(curve.rates_rps, curve.values[metric], strict=True) if v is not None]
        if known:
            ax.plot(*zip(*known, strict=True), **style.look)
        ax.axvline(curve.capacity_rps, color=style.color, linewidth=1, linestyle=":")


def _draw_points(ax: Axes, points: Sequence[_Point], metric: str, styles: Mapping[str, LineStyle]) -> None:
    for point in points:
        value = point.values[metric]
        if value is not None and point.policy in styles:
            color, width = styles[point.policy].color, value.half_width or 0.0
            ax.errorbar(point.rate_rps, value.mean, yerr=width, color=color, marker="o", markersize=4, capsize=3)
