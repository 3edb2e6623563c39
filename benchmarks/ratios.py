"""Comparisons within one run of the benchmarks, and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.fleets import BY_PREFIX, KINDS, ONE, ONE_CACHED, SIZES, name

Rows = dict[tuple[str, str], dict[str, Any]]
"""Measurements by cell and way."""

W1, LONG, MILLION = "W1", "long outputs", "W1, 1000000 requests"
AT_ONCE = "W1 all at once, "
LIMITED = 64
"""The size of a fleet that has a limit."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison.

    Attributes
    ----------
    name : str
    value : float
    limit : str
        The required value, as text; a dash if there is none.
    digits : int
        Digits after the point.
    """

    name: str
    value: float
    limit: str = "-"
    digits: int = 2


def ratios(found: dict[str, Any]) -> list[Ratio]:
    """Return the comparisons whose cells were measured."""
    rows: Rows = {(row["cell"], row["way"]): row for row in found["rows"]}
    return [
        *_floors(rows),
        *_ways(rows),
        *_growth(rows),
        *_orders(rows),
        *_memory(rows),
        *_fleets(rows),
        *_commands(found, rows),
    ]


def _floors(rows: Rows) -> Iterator[Ratio]:
    """Yield the time per request, divided by the time of one SimPy timeout."""
    limits = {
        W1: "at most 50, better 40",
        "W1, prefix caching": "at most 70",
        LONG: "at most 70",
        "Azure trace, half rate": "at most 70",
    }
    for cell, limit in limits.items():
        if (cell, "fast") in rows:
            yield Ratio(f"{cell}: time per request / time of a timeout", rows[cell, "fast"]["floor_ratio"], limit, 1)


def _ways(rows: Rows) -> Iterator[Ratio]:
    yield from _slower(rows, "W1: speed of fast / walk", (W1, "walk"), (W1, "fast"), "at least 4")
    yield from _slower(rows, "W1: speed of fast / stepped", (W1, "stepped"), (W1, "fast"), "at least 1.3")
    yield from _slower(rows, "long outputs: speed of fast / stepped", (LONG, "stepped"), (LONG, "fast"), "at least 2")
    cached = ("W1, prefix caching", "fast")
    yield from _slower(rows, "W1: time per request with / without prefix caching", cached, (W1, "fast"))


def _growth(rows: Rows) -> Iterator[Ratio]:
    small, large = ("W1, 10000 requests", "fast"), (MILLION, "fast")
    yield from _slower(rows, "W1: time per request, 1,000,000 / 10,000 requests", large, small, "at most 1.3")
    few, many = ("16 seats full", "stepped"), ("1024 seats full", "stepped")
    if {few, many} <= set(rows):
        steps = [rows[cell]["us_per_step"] * rows[cell]["floor_per_s"] for cell in (many, few)]
        yield Ratio("full seats: time per step, 1,024 / 16 seats", steps[0] / steps[1], "at most 1.5")


def _orders(rows: Rows) -> Iterator[Ratio]:
    for cell, way in rows:
        order = cell.removeprefix(AT_ONCE)
        if order not in (cell, "fcfs"):
            name = f"W1 all at once: time per request, {order} / fcfs"
            yield from _slower(rows, name, (cell, way), (f"{AT_ONCE}fcfs", way), "at most 1.5")


def _memory(rows: Rows) -> Iterator[Ratio]:
    kept, streamed = (MILLION, "fast"), (f"{MILLION}, streamed", "fast")
    if kept in rows:
        yield Ratio("1,000,000 requests in memory: peak RSS, MB", rows[kept]["peak_rss_mb"], "under 1,200", 0)
    if streamed in rows:
        name = "1,000,000 requests streamed, with the summary: peak RSS, MB"
        yield Ratio(name, rows[streamed]["peak_rss_mb"], "under 300", 0)


def _fleets(rows: Rows) -> Iterator[Ratio]:
    """Yield the time per request of each fleet, divided by that of its replica without a router."""
    for router in KINDS:
        alone = (ONE_CACHED if router in BY_PREFIX else ONE, "fast")
        for replicas in SIZES:
            limit = "at most 1.6" if replicas == LIMITED else "-"
            title = f"{router}: time per request, {replicas} replicas / one without a router"
            yield from _slower(rows, title, (name(router, replicas), "fast"), alone, limit)


def _commands(found: dict[str, Any], rows: Rows) -> Iterator[Ratio]:
    start = found["start_up"]
    yield Ratio("`--help`, s", start["help_s"], "under 0.4")
    yield Ratio("`validate`, s", start["validate_s"], "under 0.4")
    if (W1, "fast") in rows:
        simulated_s = rows[W1, "fast"]["wall_s"]
        yield Ratio("`run` of W1 / its simulation, time", start["w1_command_s"] / simulated_s)
        yield Ratio(
            "(`run` of W1 - 1.5 s) / its simulation, time", (start["w1_command_s"] - 1.5) / simulated_s, "under 2"
        )


def _slower(rows: Rows, name: str, slow: tuple[str, str], fast: tuple[str, str], limit: str = "-") -> Iterator[Ratio]:
    """Yield the ratio of the times per request of two cells, each in units of the timeouts measured with it."""
    if {slow, fast} <= set(rows):
        yield Ratio(name, rows[slow]["floor_ratio"] / rows[fast]["floor_ratio"], limit)
