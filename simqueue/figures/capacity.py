"""The figure of the capacity law: throughput, TPOT and TTFT over the arrival rate, theory and simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simqueue.figures.style import figure_style, line_styles, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

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
        As made by `simqueue.experiment.rates`.
    title : str
        What is shown, such as the scenario's name.
    """
    with figure_style():
        figure = Figure(figsize=(14, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, len(PANELS))
        styles = dict(zip([curve.policy for curve in curves], line_styles(len(curves)), strict=True))
        for ax, (metric, label) in zip(axes, PANELS.items(), strict=True):
            for curve in curves:
                style = styles[curve.policy]
                known = [(r, v) for r, v in zip(curve.rates_rps, curve.values[metric], strict=True) if v is not None]
                ax.plot(*zip(*known, strict=True), color=style.color, linestyle=style.linestyle) if known else None
                ax.axvline(curve.capacity_rps, color=style.color, linewidth=1, linestyle=":")
            _points(ax, points, metric, {name: style.color for name, style in styles.items()})
            ax.set(xlabel="arrival rate (requests/s)", title=label, xlim=(0, None))
            if metric == "request_throughput":
                ax.set_ylim(0, None)
            else:
                ax.set_yscale("log")
        handles = [
            Line2D([], [], color=s.color, linestyle=s.linestyle, label=literal(name)) for name, s in styles.items()
        ]
        handles.append(Line2D([], [], color="0.4", linestyle=":", label="capacity"))
        if points:
            marks = {"color": "0.4", "marker": "o", "linestyle": "none"}
            handles.append(Line2D([], [], label="simulated, 95 % interval", **marks))  # type: ignore[arg-type] # plain names
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        figure.suptitle(literal(title), x=0.01, ha="left")
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the same figure gives the same bytes."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with figure_style():
        figure.savefig(path, metadata=metadata)


def _points(ax: Axes, points: Sequence[_Point], metric: str, colors: Mapping[str, tuple[float, float, float]]) -> None:
    for point in points:
        value = point.values[metric]
        if value is not None and point.policy in colors:
            width = value.half_width or 0.0
            ax.errorbar(
                point.rate_rps, value.mean, yerr=width, color=colors[point.policy], marker="o", markersize=4, capsize=3
            )
