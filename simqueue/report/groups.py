"""The groups of fleets, one line each: for policies with more than one group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from simqueue.printable import printable
from simqueue.report.comparison import cell
from simqueue.report.document import Cells, Heading
from simqueue.report.layout import by_row
from simqueue.report.lines import Line, count, share
from simqueue.report.text import WIDTH

if TYPE_CHECKING:
    from rich.console import RenderableType

    from simqueue.figures.view import ResultView
    from simqueue.report.document import Block
    from simqueue.report.lines import Row

_LINES: Final = (
    Line("replicas", "replicas", count),
    Line("requests", "n_requests", count),
    Line("req/s", "request_throughput"),
    Line("TTFT p50", "median_ttft_ms", unit="ms"),
    Line("TTFT p99", "p99_ttft_ms", unit="ms"),
    Line("TPOT", "mean_tpot_ms", unit="ms"),
    Line("busy", "gpu_busy_share", share),
    Line("KV peak", "kv_peak_share", share),
    Line("hits", "prefix_hit_rate", share),
)
_TITLES: Final = ("group", *(line.label for line in _LINES))


def group_tables(result: ResultView, width: int) -> Iterator[tuple[str, RenderableType]]:
    """Yield a title and a table for each policy with more than one group."""
    for policy, rows in _by_policy(result).items():
        yield f"groups of {policy} (latencies in ms)", by_row(_TITLES, rows, left=("group",), width=min(width, WIDTH))


def group_cells(result: ResultView) -> Iterator[Block]:
    """Yield the same as blocks of a page."""
    numeric = tuple(range(1, len(_TITLES)))
    for policy, rows in _by_policy(result).items():
        yield Heading(f"Groups of {policy}", level=3)
        yield Cells(("group", *(line.titled for line in _LINES)), tuple(rows), numeric=numeric)


def _by_policy(result: ResultView) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for row in result.group_rows:
        found.setdefault(printable(str(row["policy"])), []).append(_texts(row))
    return {policy: rows for policy, rows in found.items() if len(rows) > 1}


def _texts(row: Row) -> tuple[str, ...]:
    return (printable(str(row["group"])), *(cell(row, line) for line in _LINES))
