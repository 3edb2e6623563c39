"""The comparison of policies as tables for the terminal, and its notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from simqueue.report.comparison import Cells, Comparison, comparison, rows_of_all
from simqueue.report.layout import Entry, Section, by_name
from simqueue.results.latencies import GOOD, parsed
from simqueue.results.replicated import missing_values, values_needed
from simqueue.results.steadiness import STEADY
from simqueue.results.widened import widening_note
from simqueue.workload.slo import of_requests

if TYPE_CHECKING:
    from rich.console import RenderableType

    from simqueue.figures.view import ResultView
    from simqueue.report.lines import Row

WIDTH: Final = 100
_LIMITED: Final = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "itl_ms": "longest ITL", "e2el_ms": "E2EL"}


def comparison_table(result: ResultView, width: int = WIDTH) -> RenderableType:
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
    sections = [Section("", _entries(group)) for group in found.sections.values()]
    sections += [Section(name, _entries(group), apart=True) for name, group in found.classes.items()]
    return by_name(found.policies, sections, min(width, WIDTH))


def _entries(group: Sequence[Cells]) -> tuple[Entry, ...]:
    return tuple(Entry(cells.line.label, cells.line.unit, cells.texts, cells.best) for cells in group)


def notes(result: ResultView) -> list[str]:
    """Return the notes on the table: lines left out, intervals, warm-up, limits, and percentiles of too few values."""
    rows, found = rows_of_all(result), comparison(result)
    lines = []
    if found.zero:
        lines.append(f"0 for all policies: {', '.join(found.zero)}")
    if result.replicated:
        lines.append(f"±: half the {100 * result.confidence:g} % interval over replications; [ends] if it is lopsided")
    widening = widening_note(rows)
    if widening is not None:
        lines.append(widening)
    if any(row.get("window") == STEADY for row in rows):
        lines.append(
            f"window: {_window(result, rows)}; throughput and goodput: what leaves or is made in it; latencies: "
            "requests that arrive in it; counts, KV, ITL and GPU: the whole run"
        )
    if any(row.get("mean_client_wait_ms") for row in rows):
        lines.append(
            "client wait: before a request is sent, for a free connection or after a timeout; TTFT, E2EL and goodput "
            "count from sending it"
        )
    if any(row.get(GOOD) is not None for row in rows):
        lines.append(_good(result))
    return [*lines, *_too_small(rows, found)]


def _window(result: ResultView, rows: Sequence[Row]) -> str:
    """Return from when to when the window of the first policy is; with replications, the means."""
    length_s = rows[0].get("measured_duration_s") if rows else None
    end = f" to {result.warmup_s + length_s:.4g} s" if isinstance(length_s, int | float) else ""
    return f"from {result.warmup_s:.4g}{end or ' s on'}{' (means of replications)' if result.replicated else ''}"


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
