"""The batch timeline: the requests in each slot, with their prefill and decode phases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from simqueue.figures.canvas import WIDTH, legend_below, new_figure, say_empty
from simqueue.figures.style import PALETTE, figure_style, literal
from simqueue.figures.ticks import whole_ticks
from simqueue.figures.view import ResultView, checked_policy, first_replication

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.figures.window import Window

_LARGE_ROWS: Final = 40
"""If there are more slots, rows are thin, colours tell the phase and not the request, and there are no labels."""
_ROW_INCHES: Final = 0.2
_LETTER_SHARE: Final = 0.0085
"""Width of a letter as a share of the width of the axes."""
_HEIGHT: Final = 0.82
_HELD: Final[dict[str, Any]] = {"facecolor": "0.93", "hatch": "////"}
_DARK: Final = (0, 2, 3, 7)
"""Indices in the palette of the colours on which white letters are easier to read."""
_PREFILL_COLOR: Final = "#de8f05"
_DECODE_COLOR: Final = "#0173b2"
_HELD_COLOR: Final = "0.75"


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


def batch_timeline(result: ResultView, policy: str | None = None, *, window: Window | None = None) -> Figure:
    """Return the timeline of all slots of one policy, with prefill, decode, and slots held by finished requests.

    With up to 40 slots each request has a colour, pale for prefill, and a label. With more slots, rows are thin and
    colours tell the phases.

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
    stays = [
        stay for stay in _stays(result, name) if window is None or (stay.start < window[1] and stay.end > window[0])
    ]
    slots = max((stay.slot + 1 for stay in stays), default=1)
    with figure_style():
        figure = new_figure(WIDTH, 1.4 + _ROW_INCHES * min(max(slots, 4), 32))
        ax = figure.subplots()
        draw_stays(ax, stays, window)
        ax.set(xlabel="time (s)", title=literal(f"Slots of '{name}'"))
        if not stays:
            say_empty(ax, "no request got a slot")
        legend_below(figure, stay_legend(any(stay.end > stay.last for stay in stays), large=slots <= _LARGE_ROWS))
    return figure


def draw_stays(ax: Axes, stays: Sequence[Stay], window: Window | None = None) -> None:
    """Draw stays as bars, one row per slot; `batch_timeline` says how."""
    start = min((stay.start for stay in stays), default=0.0) if window is None else window[0]
    end = max((stay.end for stay in stays), default=1.0) if window is None else window[1]
    span = end - start or 1.0
    slots = max((stay.slot + 1 for stay in stays), default=1)
    ax.set(xlim=(start - 0.005 * span, end + 0.005 * span), ylim=(slots - 0.4, -0.6), ylabel="slot")
    if slots <= _LARGE_ROWS:
        _draw_requests(ax, stays, start, end)
    else:
        _draw_phases(ax, stays)
    whole_ticks(ax.yaxis)
    ax.grid(visible=False, axis="y")


def stay_legend(held: bool, *, large: bool = True) -> list[Patch]:
    """Return the legend entries of a timeline; `held` adds that of slots held by finished requests."""
    colors = ("0.85", "0.45") if large else (_PREFILL_COLOR, _DECODE_COLOR)
    entries = [Patch(facecolor=color, label=label) for color, label in zip(colors, ("prefill", "decode"), strict=True)]
    if held:
        look: dict[str, Any] = {**_HELD, "edgecolor": "0.6"} if large else {"facecolor": _HELD_COLOR}
        entries.append(Patch(**look, label="finished, slot still held"))
    return entries


def _draw_requests(ax: Axes, stays: Sequence[Stay], start: float, end: float) -> None:
    """Draw bars with a colour and a label per request."""
    for index, stay in enumerate(stays):
        _draw_bars(ax, stay, index)
        left, right = max(stay.start, start), min(stay.last, end)
        if right - left > (len(stay.label) + 1) * _LETTER_SHARE * (end - start):
            _draw_label(ax, stay, index, (left + right) / 2)


def _draw_phases(ax: Axes, stays: Sequence[Stay]) -> None:
    """Draw thin bars with a colour per phase, all bars of a phase as one artist."""
    phases = {
        _PREFILL_COLOR: [(stay.slot, stay.start, stay.first) for stay in stays],
        _DECODE_COLOR: [(stay.slot, stay.first, stay.last) for stay in stays],
        _HELD_COLOR: [(stay.slot, stay.last, stay.end) for stay in stays],
    }
    for color, bars in phases.items():
        corners = [[(a, slot - 0.5), (b, slot - 0.5), (b, slot + 0.5), (a, slot + 0.5)] for slot, a, b in bars if b > a]
        ax.add_collection(PolyCollection(corners, facecolors=color, edgecolors="none"), autolim=False)


def _draw_bars(ax: Axes, stay: Stay, index: int) -> None:
    """Draw prefill, decode and the time for which a finished request holds its slot."""
    color = to_rgb(PALETTE[index % len(PALETTE)])
    bar: dict[str, Any] = {"height": _HEIGHT, "edgecolor": "white", "linewidth": 0.5}
    ax.barh(stay.slot, stay.first - stay.start, left=stay.start, color=_pale(color), **bar)
    ax.barh(stay.slot, stay.last - stay.first, left=stay.first, color=color, **bar)
    if stay.end > stay.last:
        ax.barh(stay.slot, stay.end - stay.last, left=stay.last, **{**bar, "edgecolor": "0.6"}, **_HELD)


def _draw_label(ax: Axes, stay: Stay, index: int, middle: float) -> None:
    """Write the label in the middle of what is seen of prefill and decode, in white on dark colours."""
    white = index % len(PALETTE) in _DARK and stay.first < middle
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
