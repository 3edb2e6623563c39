"""The figure of workloads: arrivals over time, and the distributions of prompt and output lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import seaborn as sns
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from simqueue.figures.canvas import WIDTH, legend_below, new_figure, say_empty
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.figures.ticks import whole_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.workload.describe import WorkloadDescription

_BINS: Final = 60
_LEAST_FACTOR: Final = 2.0
_FEWEST_TOKENS: Final = 10
_FEWEST_PER_BIN: Final = 8
_PANELS: Final = {"prompt": "Prompt length", "output": "Output length"}


def workload_figure(described: Sequence[WorkloadDescription]) -> Figure:
    """Return a figure with the arrival rate over time and the histograms of lengths, one line per workload."""
    styles = line_styles(len(described))
    with figure_style():
        figure = new_figure(WIDTH, 3.6)
        arrivals, *lengths = figure.subplots(1, 3)
        _draw_arrivals(arrivals, described, styles)
        for ax, (name, title) in zip(lengths, _PANELS.items(), strict=True):
            _draw_lengths(ax, [getattr(one, name).tokens for one in described], styles, title)
        if len(described) > 1:
            named = zip(described, styles, strict=True)
            legend_below(figure, [Line2D([], [], label=literal(one.name), **style.look) for one, style in named])
    return figure


def _draw_arrivals(ax: Axes, described: Sequence[WorkloadDescription], styles: Sequence[LineStyle]) -> None:
    curves = [(_rate_curve(one.arrival_s), style) for one, style in zip(described, styles, strict=True)]
    for curve, style in curves:
        if curve is not None:
            edges, rates = curve
            ax.stairs(rates, edges, linewidth=1.5, **style.look)
    ax.set(title="Arrivals", xlabel="time (s)", ylabel="arrivals per second")
    ax.set_ylim(bottom=0)
    if all(curve is None for curve, _ in curves):
        say_empty(ax, "arrivals depend on responses,\nor all requests arrive at once")


def _rate_curve(arrival_s: NDArray[np.float64] | None) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the edges of time bins in seconds and the arrivals per second in each; None if there is no curve."""
    if arrival_s is None or len(arrival_s) < 2 or arrival_s[-1] <= arrival_s[0]:
        return None
    bins = int(np.clip(len(arrival_s) // _FEWEST_PER_BIN, 1, _BINS))
    counts, edges = np.histogram(arrival_s, bins)
    return edges, counts / np.diff(edges)


def _draw_lengths(ax: Axes, samples: Sequence[NDArray[np.int64]], styles: Sequence[LineStyle], title: str) -> None:
    labels = {"title": title, "xlabel": "tokens", "ylabel": "share of requests (%)"}
    ax.set(**labels)
    filled = [tokens for tokens in samples if len(tokens)]
    if not filled:
        say_empty(ax, "no requests")
        return
    low, high = min(t.min() for t in filled), max(t.max() for t in filled)
    # The edges lie between whole numbers, so that every bin can contain one.
    edges = np.unique(np.round(np.geomspace(low, high + 1, 41))) - 0.5
    for tokens, style in zip(samples, styles, strict=True):
        if len(tokens):
            sns.histplot(
                x=tokens, bins=edges.tolist(), stat="percent", element="step", fill=len(samples) == 1,
                alpha=0.35 if len(samples) == 1 else 1.0, ax=ax, **style.look,
            )  # fmt: skip
    # Lengths that are nearly the same are not spread over a logarithmic axis.
    ax.set(xscale="log" if high > _LEAST_FACTOR * max(low, 1) else "linear", **labels)
    if high - low < _FEWEST_TOKENS:
        middle = (low + high) / 2
        ax.set_xlim(middle - _FEWEST_TOKENS / 2, middle + _FEWEST_TOKENS / 2)
    if high <= _LEAST_FACTOR * max(low, 1):
        whole_ticks(ax.xaxis)
