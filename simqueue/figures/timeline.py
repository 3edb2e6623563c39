"""The batch timeline: which request sits in which slot, when it is read and when it answers."""

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
"""Width of a letter, as a share of the axes."""


@dataclass(frozen=True, slots=True)
class Stay:
    """One request in one slot. Times are in the unit of the axis.

    Attributes
    ----------
    slot : int
    label : str
    start, first, last, end : float
        When it takes the slot, has its first token, its last token, and leaves. Between `last` and `end` the slot is
        held for nothing.
    """

    slot: int
    label: str
    start: float
    first: float
    last: float
    end: float


def batch_timeline(result: ResultView, policy: str | None = None, *, until_s: float | None = None) -> Figure:
    """Return the timeline of one policy's slots: prefill pale, decode full, a slot held for nothing hatched.

    Parameters
    ----------
    result : Result
    policy : str, optional
        By default the first.
    until_s : float, optional
        Where to stop; by default at the end, or where about 400 requests have been shown.

    Raises
    ------
    InputError
        If there is no such policy.
    """
    name = checked_policy(result, policy)
    stays = _stays(result, name)
    shown = [stay for stay in stays if stay.slot < _MOST_SLOTS and (until_s is None or stay.start <= until_s)]
    hidden = max((stay.slot + 1 for stay in stays), default=0) - _MOST_SLOTS
    title = f"Slots of '{name}'" + (f", {_MOST_SLOTS} of {hidden + _MOST_SLOTS}" if hidden > 0 else "")
    with figure_style():
        slots = max((stay.slot + 1 for stay in shown), default=1)
        figure = new_figure(10, 1.6 + 0.22 * max(slots, 4))
        ax = figure.subplots()
        draw_stays(ax, shown[:_MOST_BARS], right=until_s)
        ax.set(xlabel="time (s)", title=literal(title))
        if not shown:
            say_empty(ax, "nobody was ever given a slot")
        legend_below(figure, stay_legend(any(stay.end > stay.last for stay in shown)))
    return figure


def draw_stays(ax: Axes, stays: Sequence[Stay], right: float | None = None) -> None:
    """Draw stays as bars, one row a slot, coloured by request."""
    palette = sns.color_palette("colorblind")
    start = min((stay.start for stay in stays), default=0.0)
    end = max((stay.end for stay in stays), default=1.0) if right is None else right
    span = end - start or 1.0
    for index, stay in enumerate(stays):
        color = palette[index % len(palette)]
        bar: dict[str, Any] = {"height": 0.82, "edgecolor": "white", "linewidth": 0.5}
        ax.barh(stay.slot, stay.first - stay.start, left=stay.start, color=_pale(color), **bar)
        ax.barh(stay.slot, stay.last - stay.first, left=stay.first, color=color, **bar)
        if stay.end > stay.last:
            ax.barh(stay.slot, stay.end - stay.last, left=stay.last, **{**bar, "edgecolor": "0.6"}, **_HELD)
        if min(stay.last, end) - stay.start > (len(stay.label) + 1) * _LETTER_SHARE * span:
            middle = (stay.start + min(stay.last, end)) / 2
            dark = index % len(palette) in _DARK
            ax.text(
                middle, stay.slot, literal(stay.label), ha="center", va="center", fontsize=7, clip_on=True,
                color="white" if dark and stay.first < middle else "black",
            )  # fmt: skip
    slots = max((stay.slot + 1 for stay in stays), default=1)
    ax.set(xlim=(start - 0.005 * span, end + 0.005 * span), ylim=(slots - 0.4, -0.6), ylabel="slot")
    every = math.ceil(slots / 16)
    ax.set_yticks(range(0, slots, every))
    ax.grid(visible=False, axis="y")


_HELD: Final[dict[str, Any]] = {"facecolor": "0.93", "hatch": "////"}
_DARK: Final = (0, 2, 3, 7)
"""Places in the palette on which white letters read better."""


def stay_legend(held: bool) -> list[Patch]:
    """Return the legend of a timeline."""
    entries = [
        Patch(facecolor="0.85", label="reading the prompt (prefill)"),
        Patch(facecolor="0.45", label="answering (decode)"),
    ]
    if held:
        entries.append(Patch(**_HELD, edgecolor="0.6", label="slot held for nothing"))
    return entries


def _pale(color: tuple[float, float, float]) -> tuple[float, ...]:
    return tuple(1 - 0.35 * (1 - part) for part in color)


def _stays(result: ResultView, policy: str) -> list[Stay]:
    """Return who sat where, seats given out lowest first; preempted requests keep theirs in the picture."""
    table = first_replication(result.requests, policy)
    known = result.last_token_s(policy)
    last = table["finish_s"].to_numpy() if known is None else known
    scheduled = table["first_scheduled_s"].to_numpy()
    order = [int(row) for row in np.argsort(scheduled, kind="stable") if not math.isnan(scheduled[row])]
    columns = [table[name].tolist() for name in ("request_id", "first_token_s", "finish_s")]
    horizon = float(np.nanmax(table[["finish_s", "first_scheduled_s"]].to_numpy(), initial=0.0)) if order else 0.0
    seen = ((float(scheduled[row]), *(column[row] for column in columns), float(last[row])) for row in order)
    return list(_seated(seen, horizon))


def _seated(seen: Iterable[tuple[float, str, float, float, float]], horizon: float) -> Iterable[Stay]:
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
