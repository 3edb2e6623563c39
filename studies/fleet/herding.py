"""Routers that look at old signals: with age, all requests go to the replica that was the shortest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simqueue.figures.canvas import LEVEL, new_figure, write
from simqueue.figures.style import figure_style, line_styles
from simqueue.statistics.intervals import Estimate
from simqueue.theory.routing import random_split
from studies.fleet.exact import SERVICE_S, Size, mean_waits, played

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERVERS: Final = 8
LOADS: Final = (0.5, 0.9)
AGES: Final = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Time between two looks, in mean services."""
SIZE: Final = Size(requests=1_000, replications=6)
ROUTERS: Final[Mapping[str, str | Mapping[str, Any]]] = {
    "the shortest": "join_shortest_queue",
    "the shorter of two": {"kind": "power_of_two", "by": "running_and_waiting"},
}
OWN_COUNT: Final = "own count"


@dataclass(frozen=True, slots=True)
class Point:
    """The mean wait in services where signals are looked at every `age` services; None: whatever the age."""

    load: float
    age: float | None
    router: str
    found: Estimate


def at_random(load: float) -> float:
    """Return the mean wait in services of a random split: 8 times M/M/1."""
    return random_split(SERVERS, SERVERS * load, 1, 2).mean_wait_s


def measured(
    size: Size = SIZE, loads: Sequence[float] = LOADS, ages: Sequence[float] = AGES, workers: int = 1
) -> list[Point]:
    """Simulate the routers with signals of each age, on the same traffic."""
    return [point for load in loads for point in _points(load, ages, size, workers)]


def _points(load: float, ages: Sequence[float], size: Size, workers: int) -> Iterator[Point]:
    cases = [(name, age) for age in ages for name in ROUTERS]
    fleets: dict[str, dict[str, Any]] = {
        f"case-{i}": {"replicas": SERVERS, "router": ROUTERS[name], "signals": {"every_s": age * SERVICE_S}}
        for i, (name, age) in enumerate(cases)
    }
    fleets[OWN_COUNT.replace(" ", "-")] = {"replicas": SERVERS, "router": "least_outstanding"}
    waits = mean_waits(played(fleets, load, size, workers=workers))
    for i, (name, age) in enumerate(cases):
        yield Point(load, age, name, waits[f"case-{i}"])
    yield Point(load, None, OWN_COUNT, waits[OWN_COUNT.replace(" ", "-")])


def crossing(points: Sequence[Point], load: float, router: str) -> float | None:
    """Return the age at which the wait is that of a random split, on a line between two points; None if at none."""
    own = [(point.age, point.found.value) for point in points if (point.load, point.router) == (load, router)]
    level = at_random(load)
    for (age, wait), (later, longer) in pairwise(own):
        if age is not None and later is not None and wait <= level < longer:
            share = math.log(level / wait) / math.log(longer / wait)
            return float(age * (later / age) ** share)
    return None


def lines(points: Sequence[Point], figure: str) -> Iterator[str]:
    """Yield the section of the page."""
    yield "## Old signals"
    yield ""
    yield (
        f"{SERVERS} replicas with one seat, exponential services. The router looks at the queues from time to time "
        "and does not count what it sends in between. *The shortest* then sends all requests between two looks to the "
        "same replica (or at random to those that were equally short); *the shorter of two* spreads them more; a "
        "router's *own count* is never old. A random split needs no signal. The effect is known from Mitzenmacher "
        "2000, How useful is old information?"
    )
    yield ""
    for load in dict.fromkeys(point.load for point in points):
        found = {name: crossing(points, load, name) for name in ROUTERS}
        told = [f"*{name}* from {age:.1f} services between two looks on" for name, age in found.items() if age]
        yield f"**At a load of {load:g}, worse than random: {'; '.join(told) or 'none of them'}.**"
        yield ""
    yield f"![Mean wait over the time between two looks]({figure})"
    yield ""
    yield f"| load | services between looks | {' | '.join(ROUTERS)} | {OWN_COUNT} | random, theory |"
    yield f"|---|---|{'---|' * (len(ROUTERS) + 2)}"
    for load, age in dict.fromkeys((point.load, point.age) for point in points if point.age is not None):
        row = {point.router: point.found for point in points if point.load == load and point.age in {age, None}}
        shown = " | ".join(_shown(row[name]) for name in (*ROUTERS, OWN_COUNT))
        yield f"| {load:g} | {age:g} | {shown} | {at_random(load):.2f} |"
    yield ""


def _shown(found: Estimate) -> str:
    return f"{found.value:.2f} ± {found.half_width or 0:.2f}"


def draw(points: Sequence[Point], path: Path) -> None:
    """Draw the mean wait over the age, with the crossings."""
    loads = list(dict.fromkeys(point.load for point in points))
    with figure_style():
        figure = new_figure(10.5, 4.4)
        for ax, load in zip(figure.subplots(1, len(loads), squeeze=False)[0], loads, strict=True):
            _panel(ax, [point for point in points if point.load == load], load)
        figure.axes[0].set_ylabel("mean wait (mean services)")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        write(figure, path)


def _panel(ax: Axes, points: Sequence[Point], load: float) -> None:
    *styles, own_style = line_styles(len(ROUTERS) + 1)
    for name, style in zip(ROUTERS, styles, strict=True):
        own = [point for point in points if point.router == name]
        ages, halves = [point.age or 0 for point in own], [point.found.half_width or 0 for point in own]
        waits = [point.found.value for point in own]
        ax.errorbar(ages, waits, halves, **style.look, marker="o", markersize=3, capsize=2, label=name)
        age = crossing(points, load, name)
        if age is not None:
            ax.plot(age, at_random(load), marker="X", markersize=9, color=style.color)
            beside, side = ((-5, 7), "right") if name == next(iter(ROUTERS)) else ((2, -24), "center")
            place = (age, at_random(load))
            ax.annotate(f"{age:.1f}", place, beside, textcoords="offset points", ha=side, color=style.color)
    (own_count,) = [point for point in points if point.router == OWN_COUNT]
    ax.axhline(own_count.found.value, **own_style.look, label="own count, never old")
    ax.axhline(at_random(load), **LEVEL, label="random (theory)")
    ax.set(xscale="log", yscale="log", xlabel="time between two looks (mean services)", title=f"load {load:g}")
