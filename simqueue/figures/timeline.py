"""The batch timeline: the requests in each slot, with their prefill and decode phases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import seaborn as sns
from matplotlib.patches import Patch

from simqueue.figures.canvas import legend_below, new_figure, say_empty
from simqueue.figures.style import figure_style, literal
from simqueue.figures.view import ResultView, checked_policy, first_replication

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_SLOTS: Final = 32
_MOST_BARS: Final = 400
_LETTER_SHARE: Final = 0.011
"""Width of a letter as a share of the width of the axes."""
_HELD: Final[dict[str, Any]] = {"facecolor": "0.93", "hatch": "////"}
_DARK: Final = (0, 2, 3, 7)
"""Indices in the palette of the colours on which white letters are easier to read."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A request in a slot. Times are in the unit of the axis.

    Attributes
    ----------
    slot : int
    label : str
    start, first, last, end : float
        When the request takes the slot, emits its first and its last token, and frees the slot.
    """

    slot: int
    label: str
    start: float
    first: float
    last: float
    end: float


def batch_timeline(result: ResultView, policy: str | None = None, *, until_s: float | None = None) -> Figure:
    """Return the timeline of one policy's slots: pale for prefill, solid for decode, hatched for finished requests.

    Parameters
    ----------
    result : ResultView
    policy : str, optional
        By default the first.
    until_s : float, optional
        End of the part to draw, in seconds; by default the end of the run. At most 400 requests are drawn.

    Raises
    ------
    InputError
        If the result does not have the policy.
    """
    name = checked_policy(result, policy)
    stays = _stays(result, name)
    shown = [stay for stay in stays if stay.slot < _MOST_SLOTS and (until_s is None or stay.start <= until_s)]
    hidden = max((stay.slot + 1 for stay in stays), default=0) - _MOST_SLOTS
    title = f"Slots of '{name}'" + (f" (first {_MOST_SLOTS} of {hidden + _MOST_SLOTS})" if hidden > 0 else "")
    with figure_style():
        slots = max((stay.slot + 1 for stay in shown), default=1)
        figure = new_figure(10, 1.6 + 0.22 * max(slots, 4))
        ax = figure.subplots()
        draw_stays(ax, shown[:_MOST_BARS], right=until_s)
        ax.set(xlabel="time (s)", title=literal(title))
        if not shown:
            say_empty(ax, "no request got a slot")
        legend_below(figure, stay_legend(any(stay.end > stay.last for stay in shown)))
    return figure


def draw_stays(ax: Axes, stays: Sequence[Stay], right: float | None = None) -> None:
    """Draw stays as bars, one row per slot, with a colour per request."""
    start = min((stay.start for stay in stays), default=0.0)
    end = max((stay.end for stay in stays), default=1.0) if right is None else right
    span = end - start or 1.0
    for index, stay in enumerate(stays):
        _draw_bars(ax, stay, index)
        if min(stay.last, end) - stay.start > (len(stay.label) + 1) * _LETTER_SHARE * span:
            _draw_label(ax, stay, index, right=min(stay.last, end))
    slots = max((stay.slot + 1 for stay in stays), default=1)
    ax.set(xlim=(start - 0.005 * span, end + 0.005 * span), ylim=(slots - 0.4, -0.6), ylabel="slot")
    every = math.ceil(slots / 16)
    ax.set_yticks(range(0, slots, every))
    ax.grid(visible=False, axis="y")


def stay_legend(held: bool) -> list[Patch]:
    """Return the legend entries of a timeline; `held` adds that of slots held by finished requests."""
    entries = [Patch(facecolor="0.85", label="prefill"), Patch(facecolor="0.45", label="decode")]
    if held:
        entries.append(Patch(**_HELD, edgecolor="0.6", label="finished, slot still held"))
    return entries


def _draw_bars(ax: Axes, stay: Stay, index: int) -> None:
    """Draw prefill, decode and the time for which a finished request holds its slot."""
    palette = sns.color_palette("colorblind")
    color = palette[index % len(palette)]
    bar: dict[str, Any] = {"height": 0.82, "edgecolor": "white", "linewidth": 0.5}
    ax.barh(stay.slot, stay.first - stay.start, left=stay.start, color=_pale(color), **bar)
    ax.barh(stay.slot, stay.last - stay.first, left=stay.first, color=color, **bar)
    if stay.end > stay.last:
        ax.barh(stay.slot, stay.end - stay.last, left=stay.last, **{**bar, "edgecolor": "0.6"}, **_HELD)


def _draw_label(ax: Axes, stay: Stay, index: int, right: float) -> None:
    """Write the label in the middle of prefill and decode, in white on dark colours."""
    middle = (stay.start + right) / 2
    white = index % len(sns.color_palette("colorblind")) in _DARK and stay.first < middle
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "clip_on": True}
    ax.text(middle, stay.slot, literal(stay.label), color="white" if white else "black", **look)


def _pale(color: tuple[float, float, float]) -> tuple[float, ...]:
    return tuple(1 - 0.35 * (1 - part) for part in color)


def _stays(result: ResultView, policy: str) -> list[Stay]:
    """Return the stays of a policy's requests. A request takes the lowest free slot and keeps it when preempted."""
    table = first_replication(result.requests, policy)
    known = result.last_token_s(policy)
    last = table["finish_s"].to_numpy() if known is None else known
    scheduled = table["first_scheduled_s"].to_numpy()
    order = [int(row) for row in np.argsort(scheduled, kind="stable") if not math.isnan(scheduled[row])]
    columns = [table[name].tolist() for name in ("request_id", "first_token_s", "finish_s")]
    horizon = float(np.nanmax(table[["finish_s", "first_scheduled_s"]].to_numpy(), initial=0.0)) if order else 0.0
    seen = ((float(scheduled[row]), *(column[row] for column in columns), float(last[row])) for row in order)
    return list(_in_slots(seen, horizon))


def _in_slots(seen: Iterable[tuple[float, str, float, float, float]], horizon: float) -> Iterable[Stay]:
    """Yield the stays of requests given as (start, label, first token, finish, last token), in order of their start."""
    leaving: list[tuple[float, int]] = []
    free: list[int] = []
    slots = 0
    for start, label, first, finish, last in seen:
        end = horizon if math.isnan(finish) else finish
        while leaving and leaving[0][0] <= start:
            heappush(free, heappop(leaving)[1])
        if free:
            slot = heappop(free)
        else:
            slot, slots = slots, slots + 1
        heappush(leaving, (end, slot))
        begun = end if math.isnan(first) else first
        yield Stay(slot, str(label), start, begun, max(begun, end if math.isnan(last) else min(last, end)), end)
