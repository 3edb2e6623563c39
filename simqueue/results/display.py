"""What a result shows in Python, whether it was just computed or read from its folder."""

from __future__ import annotations

from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final

from simqueue import figures
from simqueue.results import overtime, tables
from simqueue.results.classes import ALL_CLASSES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.view import ResultView
    from simqueue.figures.window import Window

_SHOWN: Final = (
    *("completed", "rejected", "timed_out", "unfinished", "load", "overloaded", "bounded"),
    *("mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_itl_ms", "mean_e2el_ms", "p99_e2el_ms"),
    *("request_throughput", "output_throughput", "request_goodput", "gpu_busy_share"),
)
"""Columns of the summary that a notebook shows, in this order, if the summary has them."""


class Displayed:
    """Tables and figures that need only the rows of a summary and the tables of a result (`ResultView`)."""

    @cached_property
    def summary(self: ResultView) -> pd.DataFrame:
        """One row per policy, and one more per request class if there are any."""
        return tables.summary_table(self.summary_rows)

    @cached_property
    def replications(self: ResultView) -> pd.DataFrame:
        """One row per policy and replication, and one more per request class if there are any."""
        return tables.summary_table(self.replication_rows)

    @cached_property
    def groups(self: ResultView) -> pd.DataFrame:
        """One row per group of each fleet; empty without fleets."""
        return tables.groups_table(self.group_rows)

    def plot_cdf(self: ResultView, metric: str, ax: Axes | None = None) -> Axes:
        """Draw the distribution of a latency over finished requests, one line per policy.

        Parameters
        ----------
        metric : {"ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"}
        ax : matplotlib Axes, optional
            The axes to draw on; by default those of a new figure, which is the attribute ``figure`` of the result.

        Raises
        ------
        InputError
            If the metric is unknown.
        """
        return figures.cdf_axes(self, metric, ax)

    def means_over_time(self: ResultView, points: int = overtime.POINTS, until_s: float | None = None) -> pd.DataFrame:
        """Return means over the replications as functions of time, with intervals.

        One row per policy, metric and time. The metrics are `in_system`, `waiting` (never scheduled yet) and `running`
        (scheduled, also while preempted), numbers of requests at that moment, and `ttft_ms`, of the requests that
        arrive nearest to it. `low` and `high` are pointwise intervals; `simultaneous_low` and `simultaneous_high` are a
        band that contains the means of all times of the metric at once. They are missing where the replications do not
        differ. Warm-up is part of the course.

        Parameters
        ----------
        points : int
            Number of times, from 0 on.
        until_s : float, optional
            Last time; by default, and at most, when the last request of all replications leaves, or the horizon.

        Raises
        ------
        InputError
            If there are no replications, or a parameter is invalid.
        """
        return overtime.means_over_time(self, points, until_s)

    def __repr__(self: ResultView) -> str:
        return f"{type(self).__name__}(policies={list(self.policies)}, seed={self.seed}, version={self.version!r})"

    def plot(self: ResultView, name: str, policy: str | None = None, window: Window | None = None) -> Figure:
        """Draw one of the figures of a report.

        They are latencies, arrivals, kv_and_queue, token_gaps, means_over_time (of replications), of fleets
        replica_load, imbalance, prefix_hits and ttft_parts, then steps, and slots.
        The parameters and errors are those of `simqueue.figures.plots.plot`.
        """
        return figures.plot(self, name, policy, window)

    def _repr_html_(self: ResultView) -> str:
        """Return warnings and the main numbers of each policy, for notebooks."""
        rows = [row for row in self.summary_rows if row["request_class"] == ALL_CLASSES]
        shown = [name for name in _SHOWN if any(row.get(name) is not None for row in rows)]
        head = "".join(f"<th>{escape(str(row['policy']))}</th>" for row in rows)
        lines = "".join(
            f"<tr><th>{name}</th>{''.join(f'<td>{_text(row.get(name))}</td>' for row in rows)}</tr>" for name in shown
        )
        warnings = "".join(f"<li>{escape(line)}</li>" for line in self.warnings)
        return f"{f'<ul>{warnings}</ul>' if warnings else ''}<table><tr><th></th>{head}</tr>{lines}</table>"


def _text(value: Any) -> str:
    """Return a value of the summary as text; ``-`` if it is undefined."""
    if value is None:
        return "-"
    return f"{value:,.5g}" if isinstance(value, float) else escape(str(value))
