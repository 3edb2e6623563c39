"""The comparison of policies that is printed on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rich import box
from rich.table import Table
from rich.text import Text

from simqueue.results.replicated import missing_values

if TYPE_CHECKING:
    from simqueue.report.shown import Shown
    from simqueue.results.summary import Row, Value

UNDEFINED: Final = "-"
_ACROSS: Final = 5
"""Policies side by side; more are shown in further blocks below, so that the table fits 100 columns."""
_ACROSS_WITH_INTERVALS: Final = 4
_WIDTH: Final = 100
_LABELS_WIDTH: Final = 22
"""Characters for the labels of the lines, with the space around them."""


def _count(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) else UNDEFINED


def _share(value: Value) -> str:
    return f"{100 * value:.1f}%" if isinstance(value, int | float) else UNDEFINED


def _text(value: Value) -> str:
    return value if isinstance(value, str) else UNDEFINED


def _yes(value: Value) -> str:
    return UNDEFINED if value is None else "YES" if value else "no"


def _number(value: Value) -> str:
    """Show at least three significant digits."""
    if not isinstance(value, int | float):
        return UNDEFINED
    digits = 0 if abs(value) >= 1000 or value == 0 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


Format = Callable[["Value"], str]
_SECTIONS: Final[tuple[tuple[tuple[str, str, Format], ...], ...]] = (
    (
        ("completed", "completed", _count),
        ("rejected", "rejected", _count),
        ("timed out", "timed_out", _count),
        ("unfinished", "unfinished", _count),
    ),
    (
        ("throughput (req/s)", "request_throughput", _number),
        ("output (tok/s)", "output_throughput", _number),
        ("goodput (req/s)", "request_goodput", _number),
    ),
    (
        ("TTFT mean (ms)", "mean_ttft_ms", _number),
        ("TTFT p50", "median_ttft_ms", _number),
        ("TTFT p95", "p95_ttft_ms", _number),
        ("TTFT p99", "p99_ttft_ms", _number),
    ),
    (
        ("TPOT mean (ms)", "mean_tpot_ms", _number),
        ("TPOT p95", "p95_tpot_ms", _number),
        ("ITL p99 (ms)", "p99_itl_ms", _number),
        ("ITL max", "max_itl_ms", _number),
    ),
    (
        ("E2EL p50 (ms)", "median_e2el_ms", _number),
        ("E2EL p95", "p95_e2el_ms", _number),
    ),
    (
        ("preemptions", "preemptions", _count),
        ("KV peak", "kv_peak_share", _share),
        ("prefix hits", "prefix_hit_rate", _share),
        ("GPU busy", "gpu_busy_share", _share),
    ),
    (
        ("load", "load", _number),
        ("limited by", "binding", _text),
        ("overloaded", "overloaded", _yes),
        ("measured", "window", _text),
        ("cut as warm-up", "warmup_excluded", _count),
        ("replications", "replications", _count),
    ),
)

_LOAD: Final = ("load", "binding", "overloaded")

_PERCENTILES: Final = tuple(
    column for section in _SECTIONS for _, column, _ in section if column.startswith(("median_", "p95_", "p99_"))
)


def comparison_table(result: Shown, width: int = _WIDTH) -> Table:
    """Return the numbers people need first, policies side by side, as many as fit `width` (at most 100) columns.

    With replications, means carry the half-width of their interval: value ±half-width. Undefined values are shown as
    `-`. Rows of request classes are not shown.
    """
    rows = [row for row in result.summary_rows if row["request_class"] == "all"]
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    most = _ACROSS_WITH_INTERVALS if result.replicated else _ACROSS
    across = _across(rows, min(most, max(1, len(rows))), min(width, _WIDTH) - _LABELS_WIDTH)
    for _ in range(across):
        # names and numbers stay whole; only a single name wider than everything is folded
        table.add_column(justify="right", no_wrap=across > 1, overflow="fold")
    for start in range(0, len(rows), across):
        _add_block(table, rows[start : start + across])
    return table


def _across(rows: list[Row], most: int, width: int) -> int:
    """Return how many policies fit side by side."""
    wide = [max(len(text) for text in (str(row["policy"]), *_cells(row))) + 2 for row in rows]
    for across in range(most, 1, -1):
        if sum(max(wide[place::across]) for place in range(across)) <= width:
            return across
    return 1


def _cells(row: Row) -> list[str]:
    return [_cell(row, column, shown) for section in _SECTIONS for _, column, shown in section]


def comparison_rows(result: Shown) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the policies' names, and for each line of the comparison its label and one text a policy."""
    rows = [row for row in result.summary_rows if row["request_class"] == "all"]
    lines = [
        (label, [_cell(row, column, shown) for row in rows])
        for section in _SECTIONS
        for label, column, shown in section
    ]
    return [str(row["policy"]) for row in rows], lines


def notes(result: Shown) -> list[str]:
    """Return what a reader must know beside the table: intervals, warm-up, and percentiles of too few requests."""
    rows = [row for row in result.summary_rows if row["request_class"] == "all"]
    lines = []
    if result.replicated:
        lines.append(f"±: half-width of the {100 * result.confidence:g} % Student-t interval over replications")
    if result.warmup_s:
        lines.append(
            f"latencies, throughput and goodput: requests that arrived from {result.warmup_s:.4g} s on; "
            "counts, KV, ITL and GPU: the whole run"
        )
    small = [note for row in rows if (note := _too_small(row))]
    if small:
        lines.append(f"n too small (p50 takes 2 values, p95 20, p99 100): {'; '.join(small)}")
    return lines


def _too_small(row: Row) -> str | None:
    """Return which percentiles of a policy rest on too few values, and the smallest of these numbers."""
    found = {column: missing for column in _PERCENTILES if (missing := missing_values(row, column))}
    if not found:
        return None
    kinds = dict.fromkeys(column.partition("_")[0].replace("median", "p50") for column in found)
    return f"{row['policy']} {', '.join(sorted(kinds))} (n = {min(n for n, _ in found.values())})"


def _cell(row: Row, column: str, shown: Format) -> str:
    # what would limit a policy is of no use without a load, and a policy that served nobody has none to judge
    if (column == "binding" and row["load"] is None) or (column in _LOAD and not row["completed"]):
        return UNDEFINED
    low, high = row.get(f"ci_low_{column}"), row.get(f"ci_high_{column}")
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        return shown(row[column])
    return f"{shown(row[column])} ±{shown((high - low) / 2)}"


def _add_block(table: Table, rows: list[Row]) -> None:
    table.add_row("", *(Text(str(row["policy"]), style="bold") for row in rows))
    for section in _SECTIONS:
        table.add_section()
        for label, column, shown in section:
            table.add_row(label, *(_cell(row, column, shown) for row in rows))
    table.add_section()
