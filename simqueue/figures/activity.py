"""What the GPU does over time: what steps are made of, how full the KV pool is, who waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from simqueue.figures.canvas import MUTED, legend_below, new_figure, plain_log_y, say_empty
from simqueue.figures.style import figure_style, line_styles, literal
from simqueue.figures.view import ResultView, checked_policy, first_replication

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_DECODE, _PREFILL = 0, 1
_TALLEST: Final = 8
"""Times the tallest step at which the budget is still drawn."""
_NO_STEPS: Final = "no step ran"


def step_composition(result: ResultView, policy: str | None = None, *, until_s: float | None = None) -> Figure:
    """Return what one policy's steps hold over time: decodes, prompt tokens on top, and the token budget.

    Raises
    ------
    InputError
        If there is no such policy.
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
            Patch(color=colors[_PREFILL], label="prompt tokens in a step"),
            Patch(color=colors[_DECODE], label="decoding requests in a step"),
        ]
        budget = _budget(result.scenario, name)
        if budget is not None:
            handles.append(_budget_line(upper, budget, float(steps["prefill_tokens"].max(initial=0.0))))
        upper.set(ylabel="prompt tokens", title=literal(f"What the steps of '{name}' are made of"), ylim=(0, None))
        lower.set(ylabel="decodes", xlabel="time (s)", ylim=(0, None))
        if not len(steps["start_s"]):
            say_empty(upper, _NO_STEPS)
        legend_below(figure, handles)
    return figure


def _budget_line(ax: Axes, budget: int, most: float) -> Line2D:
    """Draw the budget, or say that it lies above the axes where it would press all else to the ground."""
    look: dict[str, Any] = {"color": MUTED, "linestyle": (0, (4, 3)), "linewidth": 1.2}
    inside = not 0 < most < budget / _TALLEST
    if inside:
        ax.axhline(budget, **look)
    return Line2D([], [], label=f"budget {budget:,} tokens" + ("" if inside else " (above the axis)"), **look)


def kv_and_queue(result: ResultView) -> Figure:
    """Return KV blocks in use and requests waiting over time, one line a policy."""
    styles = line_styles(len(result.policies))
    total = result.blocks_total
    with figure_style():
        figure = new_figure(10, 5)
        upper, lower = figure.subplots(2, 1, sharex=True)
        handles = []
        for name, style in zip(result.policies, styles, strict=True):
            steps = _steps(result, name)
            look: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.4}
            upper.plot(*_course(steps, "blocks_used"), drawstyle="steps-post", **look)
            lower.plot(*_course(steps, "waiting"), drawstyle="steps-post", **look)
            handles.append(Line2D([], [], label=literal(name), **look))
        if total is not None and any(steps_of["blocks_used"].max(initial=0) > total / 4 for steps_of in _all(result)):
            upper.axhline(total, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
            handles.append(Line2D([], [], color=MUTED, linestyle=(0, (4, 3)), label=f"pool of {total:,} blocks"))
        upper.set(ylabel="KV blocks in use", title="KV pool and queue over time", ylim=(0, None))
        lower.set(ylabel="requests waiting", xlabel="time (s)", ylim=(0, None))
        if not any(len(steps["start_s"]) for steps in _all(result)):
            say_empty(upper, _NO_STEPS)
        legend_below(figure, handles)
    return figure


def token_gaps(result: ResultView, *, around_s: tuple[float, float] | None = None) -> Figure:
    """Return how long decoding requests wait for their next token over time: a long prompt shows as a spike.

    Every step in which something decodes is a gap between two tokens for all who decode in it.

    Parameters
    ----------
    result : Result
    around_s : (float, float), optional
        The part of the run to show, in seconds.
    """
    styles = line_styles(len(result.policies))
    with figure_style():
        figure = new_figure(10, 4.2)
        ax = figure.subplots()
        handles = []
        drawn = False
        for name, style in zip(result.policies, styles, strict=True):
            steps = _steps(result, name)
            with_decodes = {key: column[steps["decode_seqs"] > 0] for key, column in steps.items()}
            look: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.6}
            x, y = _gaps(with_decodes)
            ax.plot(x, y, **look)
            drawn = drawn or bool(len(x))
            handles.append(Line2D([], [], label=literal(name), **look))
        if (limit := result.slo.get("tpot_ms")) is not None:
            ax.axhline(limit, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.2)
            handles.append(Line2D([], [], color=MUTED, linestyle=(0, (4, 3)), label=f"SLO of TPOT {limit:g} ms"))
        ax.set(xlabel="time (s)", ylabel="gap between two tokens (ms)", title="Decoding requests wait for a step")
        if drawn:
            plain_log_y(ax)
        else:
            say_empty(ax, "nothing decoded")
        if around_s is not None:
            ax.set_xlim(*around_s)
        legend_below(figure, handles)
    return figure


def _gaps(steps: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return a course of flat pieces, broken (NaN) where the GPU stood still between two rows."""
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


def _all(result: ResultView) -> list[dict[str, Floats]]:
    return [_steps(result, name) for name in result.policies]


def _until(steps: dict[str, Floats], until_s: float | None) -> dict[str, Floats]:
    if until_s is None:
        return steps
    inside = steps["start_s"] < until_s
    return {name: column[inside] for name, column in steps.items()}


def _stairs(ax: Axes, steps: Mapping[str, Floats], heights: Floats, color: Any) -> None:
    """Fill the area under `heights` while steps run; nothing where the GPU stands still."""
    start, end = steps["start_s"], steps["start_s"] + steps["duration_s"]
    if len(start):
        x = np.column_stack([start, start, end, end]).ravel()
        zero = np.zeros_like(heights)
        ax.fill_between(x, np.column_stack([zero, heights, heights, zero]).ravel(), color=color, linewidth=0.3)


def _course(steps: Mapping[str, Floats], name: str) -> tuple[Floats, Floats]:
    """Return times and values for stairs that fall to 0 when the last step has ended."""
    if not len(steps["start_s"]):
        return np.zeros(0), np.zeros(0)
    end = steps["start_s"][-1] + steps["duration_s"][-1]
    return np.append(steps["start_s"], end), np.append(steps[name], 0.0)


def _budget(scenario: Mapping[str, Any], policy: str) -> int | None:
    found = scenario.get("policies", {}).get(policy, {}).get("max_num_batched_tokens")
    return found if isinstance(found, int) else None
