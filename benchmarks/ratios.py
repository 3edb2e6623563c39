"""What is compared within one run, beside what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Rows = dict[tuple[str, str], dict[str, Any]]
"""Measurements by cell and way."""

W1, LONG, MILLION = "W1", "long outputs", "W1, 1000000 requests"
AT_ONCE = "W1 all at once, "


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison.

    Attributes
    ----------
    name : str
    value : float
    asked : str
        In words; a dash where nothing is.
    digits : int
        After the point, for people.
    """

    name: str
    value: float
    asked: str = "-"
    digits: int = 2


def ratios(found: dict[str, Any]) -> list[Ratio]:
    """Return the comparisons for which there are measurements."""
    rows: Rows = {(row["cell"], row["way"]): row for row in found["rows"]}
    return [*_floors(rows), *_ways(rows), *_growth(rows), *_orders(rows), *_memory(rows), *_commands(found, rows)]


def _floors(rows: Rows) -> Iterator[Ratio]:
    """Time a request over that of one SimPy timeout."""
    asked = {
        W1: "at most 50, better 40",
        "W1, prefix caching": "at most 70",
        LONG: "at most 70",
        "Azure trace, half rate": "at most 70",
    }
    for cell, limit in asked.items():
        if (cell, "fast") in rows:
            yield Ratio(f"{cell}: time a request over a timeout", rows[cell, "fast"]["floor_ratio"], limit, 1)


def _ways(rows: Rows) -> Iterator[Ratio]:
    yield from _slower(rows, "W1: fast over walk", (W1, "walk"), (W1, "fast"), "at least 4")
    yield from _slower(rows, "W1: fast over stepped", (W1, "stepped"), (W1, "fast"), "at least 1.3")
    yield from _slower(rows, "long outputs: fast over stepped", (LONG, "stepped"), (LONG, "fast"), "at least 2")
    cached = ("W1, prefix caching", "fast")
    yield from _slower(rows, "prefix caching on over off, time a request", cached, (W1, "fast"))


def _growth(rows: Rows) -> Iterator[Ratio]:
    small, large = ("W1, 10000 requests", "fast"), (MILLION, "fast")
    yield from _slower(rows, "1,000,000 requests over 10,000, time a request", large, small, "at most 1.3")
    few, many = ("16 seats full", "stepped"), ("1024 seats full", "stepped")
    if {few, many} <= set(rows):
        steps = [rows[cell]["us_per_step"] * rows[cell]["floor_per_s"] for cell in (many, few)]
        yield Ratio("1,024 seats over 16, time a step", steps[0] / steps[1], "at most 1.5")


def _orders(rows: Rows) -> Iterator[Ratio]:
    for cell, way in rows:
        order = cell.removeprefix(AT_ONCE)
        if order not in (cell, "fcfs"):
            name = f"order {order} over fcfs, time a request"
            yield from _slower(rows, name, (cell, way), (f"{AT_ONCE}fcfs", way), "at most 1.5")


def _memory(rows: Rows) -> Iterator[Ratio]:
    kept, streamed = (MILLION, "fast"), (f"{MILLION}, streamed", "fast")
    if kept in rows:
        yield Ratio("1,000,000 requests kept: peak RSS, MB", rows[kept]["peak_rss_mb"], "under 1,200", 0)
    if streamed in rows:
        name = "1,000,000 requests streamed, with their summary: peak RSS, MB"
        yield Ratio(name, rows[streamed]["peak_rss_mb"], "under 300", 0)


def _commands(found: dict[str, Any], rows: Rows) -> Iterator[Ratio]:
    start = found["start_up"]
    yield Ratio("`--help`, s", start["help_s"], "under 0.4")
    yield Ratio("`validate`, s", start["validate_s"], "under 0.4")
    if (W1, "fast") in rows:
        simulated_s = rows[W1, "fast"]["wall_s"]
        yield Ratio("`run` of W1 over its simulation, time", start["w1_command_s"] / simulated_s)
        yield Ratio(
            "`run` of W1 less 1.5 s over its simulation, time", (start["w1_command_s"] - 1.5) / simulated_s, "under 2"
        )


def _slower(rows: Rows, name: str, slow: tuple[str, str], fast: tuple[str, str], asked: str = "-") -> Iterator[Ratio]:
    """Compare the time a request of two cells, each in timeouts measured beside it, since machines change pace."""
    if {slow, fast} <= set(rows):
        yield Ratio(name, rows[slow]["floor_ratio"] / rows[fast]["floor_ratio"], asked)
