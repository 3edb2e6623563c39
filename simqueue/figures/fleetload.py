"""Figures of the replicas of fleets over time: how many requests each one has, and how unequally."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from simqueue.figures.canvas import MUTED, WIDTH, legend_below, new_figure, say_empty
from simqueue.figures.style import figure_style, line_styles, literal
from simqueue.figures.view import first_replication, fleets_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from simqueue.figures.view import ResultView

Floats = NDArray[np.float64]
_COLUMNS: Final = 150
"""Columns of the heat map."""
_PARTS: Final = 40
"""Points of the imbalance over time."""
_ROW_INCHES: Final = 0.16
_MOST_NAMES: Final = 24
"""With more replicas, only some of them are named on the axis."""
_DOWN: Final = "0.8"
_RUNS: Final = ("ready", "draining")


def replica_load(result: ResultView) -> Figure:
    """Return the requests at each replica over time: one panel per fleet, all with the same colours.

    Grey: the replica is not there, or down.
    """
    fleets = fleets_of(result)
    edges = _edges(result, _COLUMNS)
    heights = [max(3, min(len(found), 40)) * _ROW_INCHES for found in fleets.values()] or [1.0]
    with figure_style():
        figure = new_figure(WIDTH, 0.9 + sum(heights) + 0.55 * len(heights))
        axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        counts = {policy: requests_at(result, policy, edges) for policy in fleets}
        most = max((float(np.nanmax(found, initial=0.0)) for found in counts.values()), default=0.0)
        look: dict[str, Any] = {"vmin": 0, "vmax": most or 1.0, "cmap": "viridis", "rasterized": True}
        for ax, (policy, replicas) in zip(axes, fleets.items(), strict=False):
            ax.set_facecolor(_DOWN)
            image = ax.pcolormesh(
                edges, np.arange(len(replicas) + 1) - 0.5, np.ma.masked_invalid(counts[policy]), **look
            )
            ax.set(title=literal(policy), ylim=(len(replicas) - 0.5, -0.5))
            ax.grid(visible=False)
            every = -(-len(replicas) // _MOST_NAMES)
            ax.set_yticks(range(0, len(replicas), every), [literal(str(name)) for name in replicas["name"][::every]])
        if fleets:
            figure.colorbar(image, ax=list(axes), label="requests at the replica", pad=0.01, fraction=0.03)
        else:
            say_empty(axes[0], "no fleet of several replicas")
        axes[-1].set_xlabel("time (s)")
    return figure


def imbalance_over_time(result: ResultView) -> Figure:
    """Return the most requests at a replica over the mean of those that are up, over time: one line per fleet."""
    fleets = fleets_of(result)
    edges = _edges(result, _PARTS)
    with figure_style():
        figure = new_figure(WIDTH, 3.2)
        ax = figure.subplots()
        handles = []
        for policy, style in zip(result.policies, line_styles(len(result.policies)), strict=True):
            if policy not in fleets:
                continue
            counts = np.ma.masked_invalid(requests_at(result, policy, edges))
            mean = counts.mean(axis=0)
            ratio = np.ma.filled(counts.max(axis=0) / np.ma.masked_less_equal(mean, 0), np.nan)
            ax.plot((edges[1:] + edges[:-1]) / 2, ratio, **style.look)
            handles.append(Line2D([], [], label=literal(policy), **style.look))
        ax.axhline(1, color=MUTED, linewidth=0.8)
        ax.set(
            xlabel="time (s)",
            ylabel="most / mean",
            title="Imbalance of the requests at replicas",
            ylim=(0.9, None),
        )
        if not fleets:
            say_empty(ax, "no fleet of several replicas")
        legend_below(figure, handles)
    return figure


def requests_at(result: ResultView, policy: str, edges: Floats) -> Floats:
    """Return how many requests run or wait at each replica of a policy, on average over each part of the time.

    Returns
    -------
    array of shape (replicas, parts)
        Over the time in which the replica is up; NaN where that is less than half of the part.
    """
    replicas = fleets_of(result)[policy]
    steps, lives = first_replication(result.steps, policy), first_replication(result.lives, policy)
    found = np.zeros((len(replicas), len(edges) - 1))
    for row, number in enumerate(replicas["replica"]):
        own = steps[steps["replica"] == number]
        start_s = own["start_s"].to_numpy(dtype=np.float64)
        present = (own["running"] + own["waiting"]).to_numpy(dtype=np.float64)
        area = _covered(start_s, start_s + own["duration_s"].to_numpy(dtype=np.float64), edges, present)
        up_s = _covered(*_up(lives[lives["replica"] == number]), edges)
        enough = up_s > np.diff(edges) / 2
        found[row] = np.where(enough, area / np.where(enough, up_s, 1), np.nan)
    return found


def _edges(result: ResultView, parts: int) -> Floats:
    steps = result.steps
    end_s = float((steps["start_s"] + steps["duration_s"]).max()) if len(steps) else 1.0
    return np.linspace(0.0, end_s, parts + 1)


def _up(lives: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return when a replica is there and not down: starts and ends in order."""
    times_s = np.append(lives["time_s"].to_numpy(dtype=np.float64), np.inf)
    runs = lives["state"].isin(_RUNS).to_numpy(dtype=np.bool_)
    return times_s[:-1][runs], times_s[1:][runs]


def _covered(starts_s: Floats, ends_s: Floats, edges: Floats, weights: Floats | float = 1.0) -> Floats:
    """Return how much of each part is covered by spans of time in order that do not overlap, each with its weight."""
    if not len(starts_s):
        return np.zeros(len(edges) - 1)
    ends_s = np.minimum(ends_s, max(edges[-1], starts_s[-1]))
    points = np.column_stack([starts_s, ends_s]).ravel()
    covered = np.column_stack([np.zeros(len(starts_s)), weights * (ends_s - starts_s)]).ravel()
    covered_by: Floats = np.interp(edges, points, np.cumsum(covered), left=0.0)
    return np.diff(covered_by)
