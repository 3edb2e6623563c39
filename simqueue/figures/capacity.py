"""The figure of the capacity law: throughput, TPOT and TTFT over the arrival rate, in theory and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from matplotlib.lines import Line2D

from simqueue.figures.canvas import MUTED, WIDTH, legend_below, new_figure, say_empty
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


_LATENCIES: Final = ("mean_tpot_ms", "mean_ttft_ms")


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
    def value(self) -> float: ...
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

    A triangle at the upper edge marks the capacity of each policy.

    Parameters
    ----------
    curves, points : sequences
        As returned by `simqueue.experiment.rates`.
    title : str
        For example the scenario's name.
    """
    policies = list(dict.fromkeys([*(curve.policy for curve in curves), *(point.policy for point in points)]))
    styles = dict(zip(policies, line_styles(len(policies)), strict=True))
    with figure_style():
        figure = new_figure(WIDTH, 4.0)
        for ax, (metric, label) in zip(figure.subplots(1, len(PANELS), sharex=True), PANELS.items(), strict=True):
            _draw_curves(ax, curves, metric, styles)
            _draw_points(ax, points, metric, styles)
            ax.set_title(label, pad=10)  # above the triangles
            ax.set(xlabel="arrival rate (requests/s)", xlim=(0, None))
            if metric == "request_throughput":
                ax.set_ylim(0, None)
            elif any(_known(curve, metric) for curve in curves) or ax.containers:
                ax.set_yscale("log")
            else:
                say_empty(ax, "no estimate")
        handles = [
            Line2D([], [], label=literal(name) + _what_is_missing(name, curves), **style.look)
            for name, style in styles.items()
        ]
        handles.append(Line2D([], [], color=MUTED, marker="v", linestyle="none", label="capacity"))
        if points:
            handles.append(Line2D([], [], color=MUTED, marker="o", linestyle="none", label="simulated, 95 % interval"))
        legend_below(figure, handles)
        figure.suptitle(literal(title), x=0.01, ha="left")
    return figure


def _known(curve: _Curve, metric: str) -> list[tuple[float, float]]:
    """Return the rates at which a metric is estimated, with the estimates."""
    return [(r, v) for r, v in zip(curve.rates_rps, curve.values[metric], strict=True) if v is not None]


def _what_is_missing(policy: str, curves: Sequence[_Curve]) -> str:
    """Return why a policy has no line in some panels, for the legend."""
    own = [curve for curve in curves if curve.policy == policy]
    if not own:
        return " (no formula)"
    return "" if any(_known(own[0], metric) for metric in _LATENCIES) else " (no estimate of latencies)"


def _draw_curves(ax: Axes, curves: Sequence[_Curve], metric: str, styles: Mapping[str, LineStyle]) -> None:
    for curve in curves:
        style = styles[curve.policy]
        if known := _known(curve, metric):
            ax.plot(*zip(*known, strict=True), **style.look)
        top = ax.get_xaxis_transform()
        ax.plot([curve.capacity_rps], [1.0], marker="v", markersize=8, color=style.color, transform=top, clip_on=False)


def _draw_points(ax: Axes, points: Sequence[_Point], metric: str, styles: Mapping[str, LineStyle]) -> None:
    for point in points:
        found = point.values[metric]
        if found is not None:
            color, width = styles[point.policy].color, found.half_width or 0.0
            ax.errorbar(point.rate_rps, found.value, yerr=width, color=color, marker="o", markersize=4, capsize=3)
