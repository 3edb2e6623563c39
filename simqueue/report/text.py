"""The comparison of policies as a table for the terminal, and its notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rich import box
from rich.table import Table
from rich.text import Text

from simqueue.results.replicated import missing_values

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView
    from simqueue.results.summary import Value

UNDEFINED: Final = "-"
_ACROSS: Final = 5
"""Largest number of policies side by side; more policies are shown in further blocks below."""
_ACROSS_WITH_INTERVALS: Final = 4
_WIDTH: Final = 100
_LABELS_WIDTH: Final = 22
"""Characters of the labels column, including padding."""


def _count(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) else UNDEFINED


def _share(value: Value) -> str:
    return f"{100 * value:.1f}%" if isinstance(value, int | float) else UNDEFINED


def _text(value: Value) -> str:
    return value if isinstance(value, str) else UNDEFINED


def _yes(value: Value) -> str:
    return UNDEFINED if value is None else "YES" if value else "no"


def _number(value: Value) -> str:
    """Return a number with at least three significant digits."""
    if not isinstance(value, int | float):
        return UNDEFINED
    digits = 0 if abs(value) >= 1000 or value == 0 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


Format = Callable[["Value"], str]
Row = Mapping[str, "Value"]
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
        ("warm-up requests", "warmup_excluded", _count),
        ("replications", "replications", _count),
    ),
)

_CLASS_LINES: Final[tuple[tuple[str, str, Format], ...]] = (
    ("completed", "completed", _count),
    ("rejected", "rejected", _count),
    ("timed out", "timed_out", _count),
    ("throughput (req/s)", "request_throughput", _number),
    ("goodput (req/s)", "request_goodput", _number),
    ("TTFT mean (ms)", "mean_ttft_ms", _number),
    ("TTFT p95", "p95_ttft_ms", _number),
    ("TPOT mean (ms)", "mean_tpot_ms", _number),
    ("E2EL p50 (ms)", "median_e2el_ms", _number),
    ("E2EL p95", "p95_e2el_ms", _number),
)
"""The lines of each workload or request class, below those of all requests."""
_NO_CLASS: Final = "(no class)"

_LOAD: Final = ("load", "binding", "overloaded")

_PERCENTILES: Final = tuple(
    column for section in _SECTIONS for _, column, _ in section if column.startswith(("median_", "p95_", "p99_"))
)


def comparison_table(result: ResultView, width: int = _WIDTH) -> Table:
    """Return a table of the most important metrics, with as many policies side by side as fit.

    With replications, means have the half-width of their interval: value ±half-width. Undefined values are `-`. The
    lines of workloads and request classes follow those of all requests.

    Parameters
    ----------
    result : ResultView
    width : int
        Columns of the terminal; the table uses at most 100.
    """
    rows, classes = _of_all(result), _of_classes(result)
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    most = _ACROSS_WITH_INTERVALS if result.replicated else _ACROSS
    cells = [_widest(row, classes) for row in rows]
    across = _across(cells, min(most, max(1, len(rows))), min(width, _WIDTH) - _LABELS_WIDTH)
    for _ in range(across):
        # Names and numbers stay on one line, except a single name that is wider than the table.
        table.add_column(justify="right", no_wrap=across > 1, overflow="fold")
    for start in range(0, len(rows), across):
        _add_block(table, rows[start : start + across], classes)
    return table


def _of_all(result: ResultView) -> list[Row]:
    return [row for row in result.summary_rows if row["request_class"] == "all"]


def _of_classes(result: ResultView) -> dict[str, dict[str, Row]]:
    """Return the rows of workloads and classes by name and policy; not every policy must have each name."""
    found: dict[str, dict[str, Row]] = {}
    for row in result.summary_rows:
        if row["request_class"] != "all":
            name = _NO_CLASS if row["request_class"] is None else str(row["request_class"])
            found.setdefault(name, {})[str(row["policy"])] = row
    return found


def _across(widths: list[int], most: int, width: int) -> int:
    """Return how many policies with columns of these widths fit side by side."""
    for across in range(most, 1, -1):
        if sum(max(widths[index::across]) for index in range(across)) <= width:
            return across
    return 1


def _widest(row: Row, classes: dict[str, dict[str, Row]]) -> int:
    """Return the width of a policy's column in characters, including padding."""
    policy = str(row["policy"])
    texts = [_cell(row, column, shown) for section in _SECTIONS for _, column, shown in section]
    for named in classes.values():
        texts += [_cell_of(named.get(policy), column, shown) for _, column, shown in _CLASS_LINES]
    return max(map(len, (policy, *texts))) + 2


def comparison_rows(result: ResultView) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the names of the policies, and for each line of the comparison its label and one text per policy."""
    rows = _of_all(result)
    policies = [str(row["policy"]) for row in rows]
    lines = [
        (label, [_cell(row, column, shown) for row in rows])
        for section in _SECTIONS
        for label, column, shown in section
    ]
    for name, named in _of_classes(result).items():
        lines += [
            (f"{name}: {label}", [_cell_of(named.get(policy), column, shown) for policy in policies])
            for label, column, shown in _CLASS_LINES
        ]
    return policies, lines


def notes(result: ResultView) -> list[str]:
    """Return the notes on the table: intervals, warm-up, and percentiles of too few requests."""
    rows = _of_all(result)
    lines = []
    if result.replicated:
        lines.append(f"±: half-width of the {100 * result.confidence:g} % Student-t interval over replications")
    if result.warmup_s:
        lines.append(
            f"latencies, throughput and goodput: requests that arrived at or after {result.warmup_s:.4g} s; "
            "counts, KV, ITL and GPU: the whole run"
        )
    small = [note for row in rows if (note := _too_small(row))]
    if small:
        lines.append(f"n too small (p50 needs 2 values, p95 20, p99 100): {'; '.join(small)}")
    return lines


def _too_small(row: Row) -> str | None:
    """Return the percentiles of a policy that have too few values, and the smallest number of values."""
    found = {column: missing for column in _PERCENTILES if (missing := missing_values(row, column))}
    if not found:
        return None
    kinds = dict.fromkeys(column.partition("_")[0].replace("median", "p50") for column in found)
    return f"{row['policy']} {', '.join(sorted(kinds))} (n = {min(n for n, _ in found.values())})"


def _cell(row: Row, column: str, shown: Format) -> str:
    # The limit means nothing without a load, and the load nothing if all requests are rejected.
    if (column == "binding" and row["load"] is None) or (column in _LOAD and row["rejected"] == row["n_requests"]):
        return UNDEFINED
    if column == "timed_out" and row["timed_out"]:
        return f"{shown(row['timed_out'])} ({_share(row['timed_out_share'])})"
    low, high = row.get(f"ci_low_{column}"), row.get(f"ci_high_{column}")
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        return shown(row[column])
    return f"{shown(row[column])} ±{shown((high - low) / 2)}"


def _cell_of(row: Row | None, column: str, shown: Format) -> str:
    """Return the text of a cell; the row is None if the policy has no requests of the class."""
    return UNDEFINED if row is None else _cell(row, column, shown)


def _add_block(table: Table, rows: list[Row], classes: dict[str, dict[str, Row]]) -> None:
    table.add_row("", *(Text(str(row["policy"]), style="bold") for row in rows))
    for section in _SECTIONS:
        table.add_section()
        for label, column, shown in section:
            table.add_row(label, *(_cell(row, column, shown) for row in rows))
    for name, named in classes.items():
        table.add_section()
        table.add_row(Text(_short(name), style="bold"))
        for label, column, shown in _CLASS_LINES:
            table.add_row(f" {label}", *(_cell_of(named.get(str(row["policy"])), column, shown) for row in rows))
    table.add_section()


def _short(name: str) -> str:
    """Return the name of a class, shortened to fit the labels column."""
    most = _LABELS_WIDTH - 2
    return name if len(name) <= most else f"{name[: most - 3]}..."
