"""Figures over time: the contents of steps, KV blocks in use, waiting requests, and the time between tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from simqueue.figures.canvas import LEVEL, WIDTH, legend_below, level_label, log_y, new_figure, say_empty
from simqueue.figures.style import LineStyle, figure_style, line_styles, literal
from simqueue.figures.ticks import whole_ticks
from simqueue.figures.view import ResultView, busiest_replica, checked_policy, first_replication, steps_of_one

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.window import Window

Floats = NDArray[np.float64]
_DECODE, _PREFILL = 0, 1
_HIGHEST_BUDGET: Final = 8
"""The budget is drawn if it is at most this many times the largest number of prompt tokens in a step."""
_NO_STEPS: Final = "no steps"
_MARKED: Final = "0.9"
_PANEL_INCHES: Final = 1.25
_MOST_STEPS: Final = 1500
_BANDS: Final = 300
_COURSE: Final = ("start_s", "duration_s")


def step_composition(result: ResultView, policy: str | None = None, *, window: Window | None = None) -> Figure:
    """Return the prompt tokens (with the token budget) and the decodes of one policy's steps over time.

    Parameters
    ----------
    result : ResultView
    policy : str, optional
        By default the first.
    window : (float, float), optional
        Start and end of the part to draw, in seconds; by default the whole run.

    Raises
    ------
    InputError
        If the result does not have the policy.
    """
    name = checked_policy(result, policy)
    steps = _inside(_steps(result, name), window)
    colors = [style.color for style in line_styles(2)]
    with figure_style():
        figure = new_figure(WIDTH, 4.2)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        _stairs(upper, steps, steps["prefill_tokens"], colors[_PREFILL])
        _stairs(lower, steps, steps["decode_seqs"], colors[_DECODE])
        handles: list[Any] = [
            Patch(color=colors[_PREFILL], label="prompt tokens per step"),
            Patch(color=colors[_DECODE], label="decoding requests per step"),
        ]
        budget = _budget(result.scenario, name)
        if budget is not None:
            handles.append(_budget_line(upper, budget, float(steps["prefill_tokens"].max(initial=0.0))))
        upper.set(ylabel="prompt tokens", title=literal(f"Steps of '{name}'{_which(result, name)}"), ylim=(0, None))
        lower.set(ylabel="decodes", xlabel="time (s)", ylim=(0, None), **_x_limits(window))
        for ax in (upper, lower):
            whole_ticks(ax.yaxis)
        if not len(steps["start_s"]):
            say_empty(upper, _NO_STEPS)
        legend_below(figure, handles)
    return figure


def _budget_line(ax: Axes, budget: int, most: float) -> Line2D:
    """Draw the budget and return its legend entry. A budget far above all steps is only named in the legend."""
    inside = not 0 < most < budget / _HIGHEST_BUDGET
    if inside:
        ax.axhline(budget, **LEVEL)
    return level_label(f"budget {budget:,} tokens" + ("" if inside else " (above the axis)"))


def kv_and_queue(result: ResultView, *, mark: Window | None = None) -> Figure:
    """Return the KV blocks in use and the waiting requests over the whole run, one line per policy.

    Parameters
    ----------
    result : ResultView
    mark : (float, float), optional
        A part of the run to shade, in seconds: the one that other figures show.
    """
    styles = line_styles(len(result.policies))
    courses = {name: _steps(result, name) for name in result.policies}
    fleets = [name for name in result.policies if busiest_replica(result, name) is not None]
    total = None if fleets else result.blocks_total
    with figure_style():
        figure = new_figure(WIDTH, 4.6)
        upper, lower = figure.subplots(2, 1, sharex=True)
        handles: list[Any] = []
        for (name, steps), style in zip(courses.items(), styles, strict=True):
            for ax, column in ((upper, "blocks_used"), (lower, "waiting")):
                course = _of_all(result, name, column) if name in fleets else _course(steps, column)
                ax.plot(*course, drawstyle="steps-post", **style.look)
            handles.append(Line2D([], [], label=literal(name), **style.look))
        if total is not None and any(s["blocks_used"].max(initial=0) > total / 4 for s in courses.values()):
            upper.axhline(total, **LEVEL)
            handles.append(level_label(f"pool of {total:,} blocks"))
        if mark is not None:
            for ax in (upper, lower):
                ax.axvspan(*mark, color=_MARKED, zorder=0.5, linewidth=0)
            handles.append(Patch(color=_MARKED, label=f"{mark[0]:,.4g} to {mark[1]:,.4g} s: shown below"))
        upper.set(ylabel="KV blocks in use", title="KV blocks and queue over time", ylim=(0, None))
        lower.set(ylabel="waiting requests", xlabel="time (s)", ylim=(0, None))
        for ax in (upper, lower):
            whole_ticks(ax.yaxis)
        if not any(len(steps["start_s"]) for steps in courses.values()):
            say_empty(upper, _NO_STEPS)
        legend_below(figure, handles)
    return figure


def token_gaps(result: ResultView, *, window: Window | None = None) -> Figure:
    """Return the time between tokens over time, one panel per policy; a long prompt in a step appears as a spike.

    The duration of a step is the time between two tokens of every request that decodes in it, and so are the steps
    before it in which the request waits because only prompts are computed. If there are more steps
    than can be told apart, a band from the shortest to the longest step and the median of each moment are drawn.

    Parameters
    ----------
    result : ResultView
    window : (float, float), optional
        Start and end of the part of the run to show, in seconds.
    """
    policies = result.policies
    with figure_style():
        figure = new_figure(WIDTH, 1.0 + _PANEL_INCHES * max(len(policies), 1))
        axes = figure.subplots(max(len(policies), 1), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        handles, drawn = [], False
        for ax, name, style in zip(axes, policies, line_styles(len(policies)), strict=False):
            drawn |= _draw_gaps(ax, _inside(_steps(result, name), window), style)
            ax.set(ylabel="gap (ms)")
            handles.append(Line2D([], [], label=literal(name), color=style.color))
        if (limit := result.slo.get("tpot_ms")) is not None:
            for ax in axes:
                ax.axhline(limit, **LEVEL)
            handles.append(level_label(f"TPOT SLO {limit:,g} ms"))
        axes[0].set(title="Time between tokens")
        axes[-1].set(xlabel="time (s)", **_x_limits(window))
        if drawn:
            log_y(*axes)
        else:
            say_empty(axes[0], "no decoding requests")
        legend_below(figure, handles)
    return figure


def _draw_gaps(ax: Axes, steps: Mapping[str, Floats], style: LineStyle) -> bool:
    """Draw the time between tokens of one policy, and return whether there is any: single steps, or bands of them."""
    x, y = _gaps(steps)
    if len(x) > 3 * _MOST_STEPS:
        _draw_gap_bands(ax, x, y, style)
    elif len(x):
        ax.plot(x, y, color=style.color)
    return len(x) > 0


def _draw_gap_bands(ax: Axes, x: Floats, y: Floats, style: LineStyle) -> None:
    edges = np.linspace(x[0], x[-1], _BANDS + 1)
    starts, ends, gaps = x[::3], x[1::3], y[::3]
    at = np.searchsorted(starts, edges[:-1], side="right")
    # Each band has the gaps that start in it, and the one that goes on from before.
    goes_on = (at > 0) & (ends[at - 1] > edges[:-1])
    spans = zip(at - goes_on, np.searchsorted(starts, edges[1:]), strict=True)
    groups = [gaps[first:last] if last > first else np.array([np.nan]) for first, last in spans]
    low, middle, high = (np.array([of(group) for group in groups]) for of in (np.min, np.median, np.max))
    ax.fill_between(edges[:-1], low, high, step="post", color=style.color, alpha=0.3, linewidth=0)
    ax.plot(edges[:-1], middle, drawstyle="steps-post", color=style.color)


def _gaps(all_steps: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return times in seconds and gaps in milliseconds, with NaN while no request decodes.

    Three points per gap: its start, its end, and the end again, which is NaN if the next gap does not follow at once.
    """
    waited_s = _waits(all_steps)
    decoding = all_steps["decode_seqs"] > 0
    steps = {name: column[decoding] for name, column in all_steps.items()}
    step_s = steps["duration_s"] / np.maximum(steps["repeat"], 1)
    # The first step of a row can come after a wait; it is a gap of its own, before those of the other steps.
    first_end = steps["start_s"] + step_s
    start = np.column_stack([steps["start_s"] - waited_s, first_end]).ravel()
    end = np.column_stack([first_end, steps["start_s"] + steps["duration_s"]]).ravel()
    gap_ms = 1000 * np.column_stack([step_s + waited_s, step_s]).ravel()
    real = end > start
    real[1::2] &= steps["repeat"] > 1
    start, end, gap_ms = start[real], end[real], gap_ms[real]
    x = np.column_stack([start, end, end]).ravel()
    broken = np.append(start[1:] > end[:-1] + 1e-9, True) if len(start) else np.zeros(0, dtype=bool)
    y = np.column_stack([gap_ms, gap_ms, np.where(broken, np.nan, gap_ms)]).ravel()
    return x, y


def _waits(steps: Mapping[str, Floats]) -> Floats:
    """Return how long decoding requests waited before each row that decodes, in seconds.

    They wait in steps that compute prompts alone while other requests run, right after a step with decodes.
    """
    decoding = steps["decode_seqs"] > 0
    index = np.arange(len(decoding))
    before = np.append(-1, np.maximum.accumulate(np.where(decoding, index, -1)))[:-1][decoding]
    end_s = steps["start_s"] + steps["duration_s"]
    idle = np.append(False, steps["start_s"][1:] > end_s[:-1] + 1e-9)[: len(decoding)]
    alone = ~decoding & (steps["running"] <= steps["prefill_seqs"])
    ended = np.append(0, np.cumsum(idle | alone))  # how many rows before each one end a wait
    at = index[decoding]
    waits = (before >= 0) & (ended[at + 1] - ended[before + 1] == 0)
    return np.where(waits, np.maximum(steps["start_s"][at] - end_s[before], 0.0), 0.0)


def _steps(result: ResultView, policy: str) -> dict[str, Floats]:
    table = steps_of_one(result, policy)
    names = (
        "start_s", "duration_s", "repeat", "decode_seqs", "prefill_tokens", "prefill_seqs", "blocks_used", "running",
        "waiting",
    )  # fmt: skip
    return {name: table[name].to_numpy(dtype=np.float64) for name in names}


def _inside(steps: dict[str, Floats], window: Window | None) -> dict[str, Floats]:
    """Return the rows of steps that are at least partly inside the window."""
    if window is None:
        return steps
    inside = (steps["start_s"] < window[1]) & (steps["start_s"] + steps["duration_s"] > window[0])
    return {name: column[inside] for name, column in steps.items()}


def _x_limits(window: Window | None) -> dict[str, Any]:
    return {} if window is None else {"xlim": window}


def _stairs(ax: Axes, steps: Mapping[str, Floats], heights: Floats, color: Any) -> None:
    """Fill the area below `heights` while steps run; it is empty while the GPU is idle."""
    start, end = steps["start_s"], steps["start_s"] + steps["duration_s"]
    if len(start):
        x = np.column_stack([start, start, end, end]).ravel()
        zero = np.zeros_like(heights)
        ax.fill_between(x, np.column_stack([zero, heights, heights, zero]).ravel(), color=color, linewidth=0.3)


def _course(steps: Mapping[str, Floats], name: str) -> tuple[Floats, Floats]:
    """Return times and values of a step function that falls to 0 at the end of the last step."""
    if not len(steps["start_s"]):
        return np.zeros(0), np.zeros(0)
    end = steps["start_s"][-1] + steps["duration_s"][-1]
    return np.append(steps["start_s"], end), np.append(steps[name], 0.0)


def _of_all(result: ResultView, policy: str, column: str) -> tuple[Floats, Floats]:
    """Return times and values of the sum of a column over all replicas of a fleet."""
    table = first_replication(result.steps, policy)
    changes = []
    for _, steps in table.groupby("replica"):
        times_s, values = _course(
            {name: steps[name].to_numpy(dtype=np.float64) for name in _COURSE}
            | {column: steps[column].to_numpy(dtype=np.float64)},
            column,
        )
        changes.append((times_s, np.diff(values, prepend=0.0)))
    times_s, deltas = (np.concatenate([np.zeros(0), *parts]) for parts in zip(*changes, strict=True))
    order = np.argsort(times_s, kind="stable")
    return times_s[order], np.cumsum(deltas[order])


def _which(result: ResultView, policy: str) -> str:
    """Return which replica is shown; empty if there is only one."""
    number = busiest_replica(result, policy)
    return "" if number is None else f", its busiest replica ({number})"


def _budget(scenario: Mapping[str, Any], policy: str) -> int | None:
    found = scenario.get("policies", {}).get(policy, {}).get("max_num_batched_tokens")
    return found if isinstance(found, int) else None
