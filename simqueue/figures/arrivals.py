"""The figure of the rate of arrivals against the capacity of each policy, with the times of overload shaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from simqueue.figures.canvas import LEVEL, WIDTH, legend_below, level_label, new_figure, number, say_empty
from simqueue.figures.style import figure_style, line_styles, literal
from simqueue.figures.view import first_replication
from simqueue.request import QUEUE_FULL
from simqueue.statistics.rush import rushes, smoothed_rates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.view import ResultView

_PANEL_INCHES: Final = 1.5
_SHADE: Final = "#f4c7b8"


def has_rushes(result: ResultView) -> bool:
    """Return whether the rate of arrivals of a result changes and exceeds the capacity of a policy for a time."""
    return any(row.get("overloaded_share") for row in result.summary_rows)


def arrivals_and_capacity(result: ResultView) -> Figure:
    """Return the rate of arrivals over time, one panel per policy with its capacity.

    Stretches in which clearly more arrived than can be served are shaded. They are read off the arrivals of the first
    replication, so that they differ a little from those of the arrival process itself.
    """
    rows: dict[str, Mapping[str, Any]] = {
        str(row["policy"]): row for row in result.summary_rows if row["request_class"] == "all"
    }
    panels = max(len(result.policies), 1)
    color = line_styles(1)[0].color
    with figure_style():
        figure = new_figure(WIDTH, 1.0 + _PANEL_INCHES * panels)
        axes = figure.subplots(panels, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, result.policies, strict=False):
            _draw(ax, _arrivals(result, name), rows[name], color)
            ax.set_title(literal(name), fontsize="medium")
        figure.suptitle("Arrivals and capacity", x=0.01, ha="left")
        axes[-1].set(xlabel="time (s)")
        handles: list[Any] = [
            Line2D([], [], color=color, label="arrivals (requests/s, averaged over wide windows)"),
            level_label("capacity"),
            Patch(color=_SHADE, label="more arrives than can be served"),
        ]
        legend_below(figure, handles)
    return figure


def _draw(ax: Axes, arrival_s: NDArray[np.float64], row: Mapping[str, Any], color: Any) -> None:
    edges, rates = smoothed_rates(arrival_s)
    ax.set(ylabel="requests/s", ylim=(0, None))
    if not len(rates):
        say_empty(ax, "no arrivals over time")
        return
    capacity_rps = row.get("capacity_rps")
    if capacity_rps is not None:
        for start_s, end_s in rushes(arrival_s, capacity_rps):
            ax.axvspan(start_s, end_s, color=_SHADE, zorder=0.5, linewidth=0)
        ax.axhline(capacity_rps, **LEVEL)
        ax.annotate(
            number(capacity_rps),
            (1.005, capacity_rps),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize="small",
        )
    ax.stairs(rates, edges, color=color, linewidth=1.6)
    ax.set_ylim(0, 1.1 * max(float(rates.max()), capacity_rps or 0.0))


def _arrivals(result: ResultView, policy: str) -> NDArray[np.float64]:
    """Return when the requests of a policy's first replication were wanted, without retries and refused ones."""
    table: pd.DataFrame = first_replication(result.requests, policy)
    kept = ~((table["status"] == "rejected") & ~table["reject_reason"].fillna("").str.startswith(QUEUE_FULL))
    if "attempt" in table:
        kept &= table["attempt"] == 0
    waited_s = table["client_wait_ms"] / 1000 if "client_wait_ms" in table else 0.0
    return np.asarray((table["arrival_s"] - waited_s)[kept], dtype=np.float64)
