"""Figures of a workload: how many arrive when, and how long prompts and outputs are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import seaborn as sns
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import NDArray

from simqueue.figures.style import LineStyle, figure_style, line_styles, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from simqueue.workload.describe import WorkloadDescription

_BINS: Final = 60
_FEWEST_PER_BIN: Final = 8
_PANELS: Final = {"prompt": "Prompt length", "output": "Output length"}


def workload_figure(described: Sequence[WorkloadDescription]) -> Figure:
    """Return a figure with the arrival curve and the histograms of prompt and output lengths, a line a workload."""
    styles = line_styles(len(described))
    with figure_style():
        figure = Figure(figsize=(13.5, 3.8), layout="constrained")
        FigureCanvasAgg(figure)
        arrivals, *lengths = figure.subplots(1, 3)
        _draw_arrivals(arrivals, described, styles)
        for ax, (name, title) in zip(lengths, _PANELS.items(), strict=True):
            _draw_lengths(ax, [getattr(one, name).tokens for one in described], styles, title)
        if len(described) > 1:
            figure.legend(
                handles=_legend_lines(described, styles), loc="outside lower center", ncols=min(5, len(described))
            )
    return figure


def save_workload_figure(described: Sequence[WorkloadDescription], folder: Path) -> list[Path]:
    """Write the figure as PNG and SVG into `folder` and return the paths. No file holds a date."""
    figure = workload_figure(described)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "workload.png", folder / "workload.svg"]
    with figure_style():
        figure.savefig(paths[0], metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _legend_lines(described: Sequence[WorkloadDescription], styles: Sequence[LineStyle]) -> list[Line2D]:
    return [
        Line2D([], [], color=style.color, linestyle=style.linestyle, label=literal(one.name))
        for one, style in zip(described, styles, strict=True)
    ]


def _draw_arrivals(ax: Axes, described: Sequence[WorkloadDescription], styles: Sequence[LineStyle]) -> None:
    ax.set_title("Arrivals")
    ax.set_xlabel("time (s)")
    ax.set_ylabel("arrivals per second")
    drawn = False
    for one, style in zip(described, styles, strict=True):
        curve = _rate_curve(one.arrival_s)
        if curve is None:
            continue
        edges, rates = curve
        ax.stairs(rates, edges, color=style.color, linestyle=style.linestyle, linewidth=1.5)
        drawn = True
    ax.set_ylim(bottom=0)
    if not drawn:
        ax.text(
            0.5, 0.5, "arrivals depend on the answers\nor come at one instant", ha="center", va="center",
            transform=ax.transAxes,
        )  # fmt: skip


def _rate_curve(arrival_s: NDArray[np.float64] | None) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the edges of bins in seconds and the arrivals per second in each; None where there is no curve."""
    if arrival_s is None or len(arrival_s) < 2 or arrival_s[-1] <= arrival_s[0]:
        return None
    bins = int(np.clip(len(arrival_s) // _FEWEST_PER_BIN, 1, _BINS))
    counts, edges = np.histogram(arrival_s, bins)
    return edges, counts / np.diff(edges)


def _draw_lengths(ax: Axes, samples: Sequence[NDArray[np.int64]], styles: Sequence[LineStyle], title: str) -> None:
    ax.set_title(title)
    ax.set_xlabel("tokens")
    ax.set_ylabel("share of requests (%)")
    filled = [tokens for tokens in samples if len(tokens)]
    if not filled:
        ax.text(0.5, 0.5, "no requests", ha="center", va="center", transform=ax.transAxes)
        return
    low, high = min(t.min() for t in filled), max(t.max() for t in filled)
    # between whole numbers, so that no bin is too narrow to hold one
    edges = np.unique(np.round(np.geomspace(low, high + 1, 41))) - 0.5
    for tokens, style in zip(samples, styles, strict=True):
        if len(tokens):
            sns.histplot(
                x=tokens, bins=edges.tolist(), stat="percent", element="step", fill=len(samples) == 1,
                alpha=0.35 if len(samples) == 1 else 1.0, color=style.color, linestyle=style.linestyle, ax=ax,
            )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlabel("tokens")
    ax.set_ylabel("share of requests (%)")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if high / max(low, 1) > 20:
        ax.xaxis.set_minor_formatter(NullFormatter())
