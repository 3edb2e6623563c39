"""Figures over time: the contents of steps, KV blocks in use, waiting requests, and the time between tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from simqueue.figures.canvas import LEVEL, legend_below, level_label, new_figure, plain_log_y, say_empty
from simqueue.figures.style import figure_style, line_styles, literal
from simqueue.figures.view import ResultView, checked_policy, first_replication

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_DECODE, _PREFILL = 0, 1
_HIGHEST_BUDGET: Final = 8
"""The budget is drawn if it is at most this many times the largest number of prompt tokens in a step."""
_NO_STEPS: Final = "no steps"


def step_composition(result: ResultView, policy: str | None = None, *, until_s: float | None = None) -> Figure:
    """Return the prompt tokens (with the token budget) and the decodes of one policy's steps over time.

    Parameters
    ----------
    result : ResultView
    policy : str, optional
        By default the first.
    until_s : float, optional
        End of the part to draw, in seconds; by default the end of the run.

    Raises
    ------
    InputError
        If the result does not have the policy.
    """
    name = checked_policy(result, policy)
    steps = _until(_steps(result, name), until_s)
    colors = [style.color for style in line_styles(2)]
    with figure_style():
        figure = new_figure(10, 4.6)
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
        upper.set(ylabel="prompt tokens", title=literal(f"Steps of '{name}'"), ylim=(0, None))
        lower.set(ylabel="decodes", xlabel="time (s)", ylim=(0, None))
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


def kv_and_queue(result: ResultView) -> Figure:
    """Return the KV blocks in use and the waiting requests over time, one line per policy."""
    styles = line_styles(len(result.policies))
    courses = {name: _steps(result, name) for name in result.policies}
    total = result.blocks_total
    with figure_style():
        figure = new_figure(10, 5)
        upper, lower = figure.subplots(2, 1, sharex=True)
        handles = []
        for (name, steps), style in zip(courses.items(), styles, strict=True):
            look: dict[str, Any] = style.look | {"linewidth": 1.4}
            upper.plot(*_course(steps, "blocks_used"), drawstyle="steps-post", **look)
            lower.plot(*_course(steps, "waiting"), drawstyle="steps-post", **look)
            handles.append(Line2D([], [], label=literal(name), **look))
        if total is not None and any(s["blocks_used"].max(initial=0) > total / 4 for s in courses.values()):
            upper.axhline(total, **LEVEL)
            handles.append(level_label(f"pool of {total:,} blocks"))
        upper.set(ylabel="KV blocks in use", title="KV blocks and queue over time", ylim=(0, None))
        lower.set(ylabel="waiting requests", xlabel="time (s)", ylim=(0, None))
        if not any(len(steps["start_s"]) for steps in courses.values()):
            say_empty(upper, _NO_STEPS)
        legend_below(figure, handles)
    return figure


def token_gaps(result: ResultView, *, around_s: tuple[float, float] | None = None) -> Figure:
    """Return the time between tokens over time; a long prompt in a step appears as a spike.

    The duration of a step is the time between two tokens of every request that decodes in it.

    Parameters
    ----------
    result : ResultView
    around_s : (float, float), optional
        Start and end of the part of the run to show, in seconds.
    """
    styles = line_styles(len(result.policies))
    with figure_style():
        figure = new_figure(10, 4.2)
        ax = figure.subplots()
        handles = []
        for name, style in zip(result.policies, styles, strict=True):
            look: dict[str, Any] = style.look | {"linewidth": 1.6}
            ax.plot(*_gaps(_steps(result, name)), **look)
            handles.append(Line2D([], [], label=literal(name), **look))
        drawn = any(len(np.asarray(line.get_xdata())) for line in ax.lines)
        if (limit := result.slo.get("tpot_ms")) is not None:
            ax.axhline(limit, **LEVEL)
            handles.append(level_label(f"TPOT SLO {limit:g} ms"))
        ax.set(xlabel="time (s)", ylabel="time between tokens (ms)", title="Time between tokens")
        if drawn:
            plain_log_y(ax)
        else:
            say_empty(ax, "no decoding requests")
        if around_s is not None:
            ax.set_xlim(*around_s)
        legend_below(figure, handles)
    return figure


def _gaps(all_steps: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return times in seconds and gaps in milliseconds of the steps with decodes, with NaN while the GPU is idle."""
    steps = {name: column[all_steps["decode_seqs"] > 0] for name, column in all_steps.items()}
    start, length = steps["start_s"], steps["duration_s"]
    gap_ms = 1000 * length / np.maximum(steps["repeat"], 1)
    end = start + length
    x = np.column_stack([start, end, end]).ravel()
    broken = np.append(start[1:] > end[:-1] + 1e-12, True) if len(start) else np.zeros(0, dtype=bool)
    y = np.column_stack([gap_ms, gap_ms, np.where(broken, np.nan, gap_ms)]).ravel()
    return x, y


def _steps(result: ResultView, policy: str) -> dict[str, Floats]:
    table = first_replication(result.steps, policy)
    names = (
        "start_s", "duration_s", "repeat", "decode_seqs", "prefill_tokens", "blocks_used", "waiting"
    )  # fmt: skip
    return {name: table[name].to_numpy(dtype=np.float64) for name in names}


def _until(steps: dict[str, Floats], until_s: float | None) -> dict[str, Floats]:
    if until_s is None:
        return steps
    inside = steps["start_s"] < until_s
    return {name: column[inside] for name, column in steps.items()}


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


def _budget(scenario: Mapping[str, Any], policy: str) -> int | None:
    found = scenario.get("policies", {}).get(policy, {}).get("max_num_batched_tokens")
    return found if isinstance(found, int) else None
