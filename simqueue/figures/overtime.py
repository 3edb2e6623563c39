"""The figure of means over time: requests in the system, waiting and running, and TTFT by arrival, with their bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from simqueue.figures.canvas import MUTED, WIDTH, legend_below, new_figure, say_empty
from simqueue.figures.style import figure_style, line_styles, literal

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.style import LineStyle
    from simqueue.figures.view import ResultView

PANELS: Final = {
    "in_system": "Requests in the system",
    "ttft_ms": "Mean TTFT by time of arrival (ms)",
    "waiting": "Requests waiting",
    "running": "Requests running",
}


def over_time(result: ResultView) -> Figure:
    """Return means over the replications over time: lines with pointwise intervals, and lighter simultaneous bands.

    Raises
    ------
    InputError
        If there are no replications.
    """
    table = result.means_over_time()
    styles = line_styles(len(result.policies))
    with figure_style():
        figure = new_figure(WIDTH, 5.6)
        axes = figure.subplots(2, 2, sharex=True)
        for ax, (metric, title) in zip(axes.flat, PANELS.items(), strict=True):
            own = table[table["metric"] == metric]
            for name, style in zip(result.policies, styles, strict=True):
                _draw(ax, own[own["policy"] == name], style)
            ax.set(title=title, ylim=(0, None), xlim=(0, None))
            if not own["value"].notna().any():
                say_empty(ax, "no request has a value")
        for ax in axes[1]:
            ax.set_xlabel("time (s)")
        share = f"{100 * result.confidence:g} %"
        handles = [
            *(Line2D([], [], label=literal(n), **s.look) for n, s in zip(result.policies, styles, strict=True)),
            Patch(color=MUTED, alpha=0.35, linewidth=0, label=f"{share} at each time"),
            Patch(color=MUTED, alpha=0.15, linewidth=0, label=f"{share} at all times at once"),
        ]
        legend_below(figure, handles)
    return figure


def _draw(ax: Axes, rows: pd.DataFrame, style: LineStyle) -> None:
    ax.plot(rows["time_s"], rows["value"], **style.look)
    for low, high, alpha in (("low", "high", 0.25), ("simultaneous_low", "simultaneous_high", 0.12)):
        ax.fill_between(rows["time_s"], rows[low], rows[high], color=style.color, alpha=alpha, linewidth=0)
