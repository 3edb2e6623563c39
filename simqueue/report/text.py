"""The comparison of policies as tables for the terminal, and its notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from simqueue.report.comparison import Cells, Comparison, comparison, rows_of_all
from simqueue.results.latencies import GOOD, parsed
from simqueue.results.replicated import missing_values, values_needed
from simqueue.workload.slo import of_requests

if TYPE_CHECKING:
    from rich.console import RenderableType

    from simqueue.figures.view import ResultView
    from simqueue.report.lines import Row

_WIDTH: Final = 100
_GAP: Final = 3
"""Characters between two columns."""
_EDGES: Final = 2
_LIMITED: Final = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "itl_ms": "longest ITL", "e2el_ms": "E2EL"}
_LABELS_WIDTH: Final = 20
"""Least number of characters of the labels column, without padding."""


def comparison_table(result: ResultView, width: int = _WIDTH) -> RenderableType:
    """Return the comparison: policies side by side if they fit, else one row per policy.

    The lines of workloads and request classes follow those of all requests. No number is ever cut. The best values are
    bold.

    Parameters
    ----------
    result : ResultView
    width : int
        Columns of the terminal; tables use at most 100, unless a single number needs more.
    """
    found = comparison(result)
    most = min(width, _WIDTH)
    return _side_by_side(found) if _width(found) <= most else Group(*_turned(found, most))


def _width(found: Comparison) -> int:
    """Return the width of the table with policies side by side."""
    lines = [*found.sections.values(), *found.classes.values()]
    columns = [
        max(len(name), *(len(cells.texts[index]) for group in lines for cells in group))
        for index, name in enumerate(found.policies)
    ]
    labels = [_LABELS_WIDTH, *(len(cells.line.titled) for group in lines for cells in group), *map(len, found.classes)]
    return _EDGES + max(labels) + sum(_GAP + column for column in columns)


def _side_by_side(found: Comparison) -> Table:
    """Return one table with a column per policy."""
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True, min_width=_LABELS_WIDTH)
    for _ in found.policies:
        table.add_column(justify="right", no_wrap=True)
    if found.policies:
        table.add_row("", *(Text(name, style="bold") for name in found.policies))
    for group in found.sections.values():
        table.add_section()
        for cells in group:
            table.add_row(cells.line.titled, *_texts(cells))
    for name, group in found.classes.items():
        table.add_section()
        table.add_row(Text(name, style="bold"))
        for cells in group:
            table.add_row(f" {cells.line.titled}", *_texts(cells))
    return table


def _texts(cells: Cells) -> Iterator[Text]:
    for index, shown in enumerate(cells.texts):
        yield Text(shown, style="bold" if index in cells.best else "")


def _turned(found: Comparison, width: int) -> Iterator[Table]:
    """Yield tables with a row per policy, with as many lines side by side as fit; each class has tables of its own."""
    every = [cells for group in found.sections.values() for cells in group]
    yield from _rows_of_policies("", found.policies, every, width)
    for name, group in found.classes.items():
        yield from _rows_of_policies(name, found.policies, group, width)


def _rows_of_policies(title: str, policies: Sequence[str], group: Sequence[Cells], width: int) -> Iterator[Table]:
    names = min(max(map(len, (title, *policies))), width // 2)  # longer names are broken into several lines
    for part in _fitting(group, width - _EDGES - names):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        table.add_column(Text(title), width=names, overflow="fold", vertical="bottom")
        for cells in part:
            table.add_column(_head(cells), justify="right", no_wrap=True, min_width=_needs(cells))
        for index, name in enumerate(policies):
            table.add_row(Text(name), *(list(_texts(cells))[index] for cells in part))
        yield table


def _fitting(group: Sequence[Cells], width: int) -> Iterator[list[Cells]]:
    """Yield the lines in parts that are at most this wide, each with at least one line."""
    part: list[Cells] = []
    used = 0
    for cells in group:
        needed = _GAP + _needs(cells)
        if part and used + needed > width:
            yield part
            part, used = [], 0
        part.append(cells)
        used += needed
    if part:
        yield part


def _head(cells: Cells) -> Text:
    """Return the head of a line's column, with the unit below the label."""
    unit = cells.line.unit
    return Text(f"{cells.line.label}\n({unit})" if unit else cells.line.label)


def _needs(cells: Cells) -> int:
    """Return the width that a line's column needs."""
    return max(*map(len, _head(cells).plain.splitlines()), *map(len, cells.texts))


def notes(result: ResultView) -> list[str]:
    """Return the notes on the table: lines left out, intervals, warm-up, limits, and percentiles of too few values."""
    rows, found = rows_of_all(result), comparison(result)
    lines = []
    if found.zero:
        lines.append(f"0 for all policies: {', '.join(found.zero)}")
    if result.replicated:
        lines.append(f"±: half-width of the {100 * result.confidence:g} % Student-t interval over replications")
    if result.warmup_s:
        lines.append(
            f"latencies, throughput and goodput: requests that arrived at or after {result.warmup_s:.4g} s; "
            "counts, KV, ITL and GPU: the whole run"
        )
    if any(row.get("mean_client_wait_ms") for row in rows):
        lines.append(
            "client wait: before a request is sent, for a free connection or after a timeout; TTFT, E2EL and goodput "
            "count from sending it"
        )
    if any(row.get(GOOD) is not None for row in rows):
        lines.append(_good(result))
    return [*lines, *_too_small(rows, found)]


def _good(result: ResultView) -> str:
    """Return which requests are good."""
    limits = [f"{_LIMITED[name]} <= {value:g} ms" for name, value in of_requests(result.slo).items()]
    own = any(slo != result.slo for slo in result.class_slo.values())
    which = f" with {' and '.join(limits)}" if limits else ""
    which += ", or what the slo of their own workload or class says" if own else ""
    return f"good requests: the share of all requests that finish{which}"


def _too_small(rows: Sequence[Row], found: Comparison) -> Iterator[str]:
    """Yield a line about percentiles that have too few values for one to lie beyond them."""
    columns = [cells.line.column for group in found.sections.values() for cells in group]
    levels = {name: level[0] for name in columns if (level := parsed(name)) is not None and level[0] is not None}
    small = []
    for row in rows:
        missing = {levels[name]: lacks[0] for name in levels if (lacks := missing_values(row, name))}
        if missing:
            kinds = ", ".join(f"p{q:g}" for q in sorted(missing))
            small.append(f"'{row['policy']}': {kinds} (n = {min(missing.values())})")
    if small:
        first, *others = [(f"p{q:g}", values_needed(q)) for q in sorted(set(levels.values()))]
        needs = ", ".join([f"{first[0]} needs {first[1]} values", *(f"{name} {n}" for name, n in others)])
        yield f"n too small ({needs}): {'; '.join(small)}"
