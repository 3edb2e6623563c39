"""Figures of the requests of fleets: prefix hits by replica, and where the time to the first token goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.patches import Patch
from numpy.typing import NDArray

from simqueue.figures.canvas import WIDTH, legend_below, new_figure, say_empty
from simqueue.figures.style import PALETTE, figure_style, line_styles, literal
from simqueue.figures.view import first_replication, fleets_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from simqueue.figures.view import ResultView

Floats = NDArray[np.float64]
BANDS: Final = ((0, 50), (50, 90), (90, 99), (99, 100))
"""Percentiles of TTFT between which requests are taken together."""
PARTS: Final = ("router", "failed attempts", "queue at the replica", "prefill to first token")
_MOST_NAMES: Final = 24
_MOST_PANELS: Final = 4


def prefix_hits(result: ResultView) -> Figure:
    """Return the share of looked-up prompt tokens that each replica found in its prefix cache: one panel per fleet."""
    fleets = {name: found for name, found in fleets_of(result).items() if _any_hit(found)}
    styles = dict(zip(result.policies, line_styles(len(result.policies)), strict=True))
    with figure_style():
        figure = new_figure(WIDTH, 0.6 + 1.7 * max(len(fleets), 1))
        axes = figure.subplots(max(len(fleets), 1), 1, sharey=True, squeeze=False)[:, 0]
        for ax, (policy, replicas) in zip(axes, fleets.items(), strict=False):
            rates = 100 * replicas["prefix_hit_rate"].to_numpy(dtype=np.float64)
            ax.bar(np.arange(len(rates)), np.nan_to_num(rates), color=styles[policy].color, width=0.8)
            every = -(-len(rates) // _MOST_NAMES)
            ax.set_xticks(range(0, len(rates), every), [literal(str(name)) for name in replicas["name"][::every]])
            ax.set(title=literal(policy), ylabel="prefix hits (%)", ylim=(0, None))
            ax.grid(visible=False, axis="x")
        if not fleets:
            say_empty(axes[0], "no prefix hits")
    return figure


def has_prefix_hits(result: ResultView) -> bool:
    """Return whether any replica of a fleet found anything in its prefix cache."""
    return any(map(_any_hit, fleets_of(result).values()))


def _any_hit(replicas: pd.DataFrame) -> bool:
    return bool(replicas["prefix_hit_rate"].fillna(0).gt(0).any())


def ttft_parts(result: ResultView) -> Figure:
    """Return where the time to the first token goes, as stacked means of requests between percentiles of their TTFT.

    One panel per fleet. Failed attempts are all before the last one, and the waits between them.
    """
    fleets = fleets_of(result)
    colors = [PALETTE[at] for at in (7, 3, 1, 0)]
    with figure_style():
        columns = max(1, min(len(fleets), _MOST_PANELS))
        rows = max(1, -(-len(fleets) // columns))
        figure = new_figure(WIDTH, 0.4 + 3.2 * rows)
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        axes = grid.ravel()
        for ax in axes[max(len(fleets), 1) :]:
            ax.set_axis_off()
        for ax, policy in zip(axes, fleets, strict=False):
            bands = parts_by_band(first_replication(result.requests, policy))
            bottom = np.zeros(len(BANDS))
            for heights, color in zip(bands.T, colors, strict=True):
                ax.bar(np.arange(len(BANDS)), heights, bottom=bottom, color=color, width=0.7)
                bottom = bottom + heights
            ax.set_xticks(range(len(BANDS)), [f"{low}-{high}" for low, high in BANDS])
            ax.set(title=literal(policy))
            ax.grid(visible=False, axis="x")
            ax.set_xlabel("percentiles of TTFT")
        axes[0].set_ylim(bottom=0)  # of all panels, which share it
        for ax in grid[:, 0]:
            ax.set_ylabel("TTFT (ms), mean")
        if not fleets:
            say_empty(axes[0], "no fleet of several replicas")
        legend_below(figure, [Patch(color=color, label=name) for name, color in zip(PARTS, colors, strict=True)])
    return figure


def parts_by_band(requests: pd.DataFrame) -> Floats:
    """Return the mean of each part of TTFT in ms, shape (bands, parts), over finished requests; 0 for an empty band."""
    done = requests[(requests["status"] == "finished") & requests["router_ms"].notna()]
    ttft_ms = done["ttft_ms"].to_numpy(dtype=np.float64)
    router_ms = np.minimum(done["router_ms"].to_numpy(dtype=np.float64), ttft_ms)
    until_ms = 1000 * (done["first_scheduled_s"] - done["arrival_s"]).to_numpy(dtype=np.float64)
    failed_ms = done["failed_attempts_ms"].to_numpy(dtype=np.float64)
    before_ms = np.minimum(router_ms + failed_ms, ttft_ms)
    queue_ms = np.clip(until_ms, before_ms, ttft_ms) - before_ms
    parts = np.column_stack([router_ms, before_ms - router_ms, queue_ms, ttft_ms - before_ms - queue_ms])
    found = np.zeros((len(BANDS), len(PARTS)))
    order = np.argsort(ttft_ms, kind="stable")
    for row, (low, high) in enumerate(BANDS):
        inside = order[round(len(order) * low / 100) : round(len(order) * high / 100)]
        if len(inside):
            found[row] = parts[inside].mean(axis=0)
    return found
