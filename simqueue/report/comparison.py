"""The comparison of policies as lines of texts in groups, which terminals and pages lay out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView
    from simqueue.results.summary import Value

Format = Callable[["Value"], str]
Row = Mapping[str, "Value"]
Better = Literal["", "higher", "lower"]
UNDEFINED: Final = "-"
NO_CLASS: Final = "(no class)"
_LOAD: Final = ("load", "binding", "overloaded")


def count(value: Value) -> str:
    """Return a whole number with thousands separators."""
    return f"{value:,}" if isinstance(value, int) else UNDEFINED


def share(value: Value) -> str:
    """Return a share in percent."""
    return f"{100 * value:.1f}%" if isinstance(value, int | float) else UNDEFINED


def text(value: Value) -> str:
    """Return a text."""
    return value if isinstance(value, str) else UNDEFINED


def yes(value: Value) -> str:
    """Return whether something is so; YES is in capitals because it calls for attention."""
    return UNDEFINED if value is None else "YES" if value else "no"


def number(value: Value) -> str:
    """Return a number with at least three significant digits."""
    if not isinstance(value, int | float):
        return UNDEFINED
    digits = 0 if abs(value) >= 1000 or value == 0 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the comparison: a column of the summary.

    Attributes
    ----------
    label : str
    column : str
        Name of the column.
    shown : callable
        Returns a value as text.
    unit : str
        Unit of the values, or empty.
    better : {"", "higher", "lower"}
        Which values are better; empty if neither is.
    optional : bool
        Whether the line is left out if it says nothing: if all values are undefined or `usual`.
    usual : value
        The value that says nothing; None if every value says something.
    of_classes : bool
        Whether the line is shown for each workload and request class too.
    """

    label: str
    column: str
    shown: Format = number
    unit: str = ""
    better: Better = ""
    optional: bool = False
    usual: Value = 0
    of_classes: bool = False

    @property
    def titled(self) -> str:
        """The label with the unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def says_nothing(self, rows: Iterable[Row]) -> bool:
        """Return whether the line can be left out for these rows."""
        return self.optional and all(row.get(self.column) in (None, self.usual) for row in rows)


def _from_client(label: str, metric: str, statistics: Sequence[str]) -> tuple[Line, ...]:
    """Return the lines of a latency that counts from when the client wanted the request."""
    return tuple(
        Line(
            f"{label} {kind.replace('median', 'p50')}",
            f"{kind}_{metric}_ms",
            unit="ms",
            better="lower",
            optional=True,
            usual=None,
        )
        for kind in statistics
    )


SECTIONS: Final[Mapping[str, tuple[Line, ...]]] = {
    "Requests": (
        Line("completed", "completed", count, of_classes=True),
        Line("rejected", "rejected", count, better="lower", optional=True, of_classes=True),
        Line("timed out", "timed_out", count, better="lower", optional=True, of_classes=True),
        Line("unfinished", "unfinished", count, optional=True),
    ),
    "Throughput": (
        Line("throughput", "request_throughput", unit="req/s", better="higher", of_classes=True),
        Line("output", "output_throughput", unit="tok/s", better="higher"),
        Line("goodput", "request_goodput", unit="req/s", better="higher", optional=True, usual=None, of_classes=True),
    ),
    "Time to first token": (
        Line("TTFT mean", "mean_ttft_ms", unit="ms", better="lower", of_classes=True),
        Line("TTFT p50", "median_ttft_ms", unit="ms", better="lower"),
        Line("TTFT p95", "p95_ttft_ms", unit="ms", better="lower", of_classes=True),
        Line("TTFT p99", "p99_ttft_ms", unit="ms", better="lower"),
    ),
    "Time between tokens": (
        Line("TPOT mean", "mean_tpot_ms", unit="ms", better="lower", of_classes=True),
        Line("TPOT p95", "p95_tpot_ms", unit="ms", better="lower"),
        Line("ITL p99", "p99_itl_ms", unit="ms", better="lower"),
        Line("ITL max", "max_itl_ms", unit="ms", better="lower"),
    ),
    "Whole response": (
        Line("E2EL p50", "median_e2el_ms", unit="ms", better="lower", of_classes=True),
        Line("E2EL p95", "p95_e2el_ms", unit="ms", better="lower", of_classes=True),
    ),
    "Wait at the client": (
        Line("client wait mean", "mean_client_wait_ms", unit="ms", better="lower", optional=True, of_classes=True),
        *_from_client("client wait", "client_wait", ("median", "p95", "p99")),
        *_from_client("wait + TTFT", "wanted_ttft", ("mean", "median", "p99")),
        *_from_client("wait + E2EL", "wanted_e2el", ("mean", "median", "p99")),
    ),
    "Machine": (
        Line("preemptions", "preemptions", count, better="lower", optional=True),
        Line("KV peak", "kv_peak_share", share),
        Line("prefix hits", "prefix_hit_rate", share, better="higher", optional=True),
        Line("GPU busy", "gpu_busy_share", share),
    ),
    "Load and run": (
        Line("load", "load", better="lower"),
        Line("limited by", "binding", text),
        Line("overloaded", "overloaded", yes),
        Line("measured", "window", text, optional=True, usual="whole run"),
        Line("warm-up requests", "warmup_excluded", count, optional=True),
        Line("replications", "replications", count, optional=True, usual=1),
    ),
}
"""The lines of the comparison by section. A terminal separates sections by a blank line, a page by their titles."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One line as texts, one per policy.

    Attributes
    ----------
    line : Line
    texts : tuple of str
    best : frozenset of int
        Indices of the policies with the best value; empty if none is better.
    """

    line: Line
    texts: tuple[str, ...]
    best: frozenset[int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All lines that say something.

    Attributes
    ----------
    policies : tuple of str
    sections : mapping of str to tuple of Cells
    classes : mapping of str to tuple of Cells
        Lines of each workload and request class by its name. All classes have the same lines.
    zero : tuple of str
        Labels of the counts that are left out because they are 0 for all policies.
    """

    policies: tuple[str, ...]
    sections: Mapping[str, tuple[Cells, ...]]
    classes: Mapping[str, tuple[Cells, ...]]
    zero: tuple[str, ...]


def comparison(result: ResultView) -> Comparison:
    """Return the comparison of a result's policies; with replications, means have the half-width of their interval."""
    rows = rows_of_all(result)
    policies = tuple(str(row["policy"]) for row in rows)
    sections = {
        title: tuple(_cells(line, rows) for line in lines if not line.says_nothing(rows))
        for title, lines in SECTIONS.items()
    }
    left = [line for lines in SECTIONS.values() for line in lines if line.shown is count and line.says_nothing(rows)]
    zero = tuple(line.label for line in left if line.usual == 0)
    shown = {title: lines for title, lines in sections.items() if lines} if rows else {}
    return Comparison(policies, shown, _classes(result, policies), zero if rows else ())


def rows_of_all(result: ResultView) -> list[Row]:
    """Return the rows of the summary that are of all requests, one per policy."""
    return [row for row in result.summary_rows if row["request_class"] == "all"]


def _classes(result: ResultView, policies: Sequence[str]) -> dict[str, tuple[Cells, ...]]:
    """Return the lines of workloads and classes by name; not every policy must have each name."""
    found: dict[str, dict[str, Row]] = {}
    for row in result.summary_rows:
        if row["request_class"] != "all":
            name = NO_CLASS if row["request_class"] is None else str(row["request_class"])
            found.setdefault(name, {})[str(row["policy"])] = row
    every = [row for named in found.values() for row in named.values()]
    lines = [line for section in SECTIONS.values() for line in section if line.of_classes]
    kept = [line for line in lines if not line.says_nothing(every)]
    return {
        name: tuple(_cells(line, [named.get(p) for p in policies]) for line in kept) for name, named in found.items()
    }


def _cells(line: Line, rows: Sequence[Row | None]) -> Cells:
    """Return the cells of a line; a row is None if the policy has no requests of the class."""
    texts = tuple(UNDEFINED if row is None else cell(row, line) for row in rows)
    return Cells(line, texts, _best(line, rows, texts))


def cell(row: Row, line: Line) -> str:
    """Return the value of a line in a row as text."""
    column, shown = line.column, line.shown
    # The limit means nothing without a load, and the load nothing if all requests are rejected.
    if (column == "binding" and row["load"] is None) or (column in _LOAD and row["rejected"] == row["n_requests"]):
        return UNDEFINED
    if column == "timed_out" and row["timed_out"]:
        return f"{shown(row['timed_out'])} ({share(row['timed_out_share'])})"
    ends = _interval(row, column)
    if ends is None:
        return shown(row[column])
    return f"{shown(row[column])} ±{shown((ends[1] - ends[0]) / 2)}"


def _interval(row: Row, column: str) -> tuple[float, float] | None:
    """Return the ends of a column's interval over replications; None without one."""
    low, high = row.get(f"ci_low_{column}"), row.get(f"ci_high_{column}")
    return (low, high) if isinstance(low, int | float) and isinstance(high, int | float) else None


def _best(line: Line, rows: Sequence[Row | None], texts: Sequence[str]) -> frozenset[int]:
    """Return which rows have the best value, and those that cannot be told from it; none if that is all of them."""
    known = {i: v for i, row in enumerate(rows) if row and isinstance(v := row[line.column], int | float)}
    known = {i: value for i, value in known.items() if texts[i] != UNDEFINED}
    if not line.better or len(known) < 2 or any(_unsure(rows[i], line.column) for i in known):
        return frozenset()
    top = (max if line.better == "higher" else min)(known, key=lambda index: known[index])
    alike = {i for i in known if texts[i] == texts[top] or _overlap(rows[i], rows[top], line.column)}
    return frozenset() if len(alike) == len(known) else frozenset(alike)


def _unsure(row: Row | None, column: str) -> bool:
    """Return whether a value is of several replications and has no interval."""
    replications = None if row is None else row.get("replications")
    return row is not None and isinstance(replications, int) and replications > 1 and _interval(row, column) is None


def _overlap(one: Row | None, other: Row | None, column: str) -> bool:
    """Return whether the intervals of two rows have values in common."""
    ends, others = (None if row is None else _interval(row, column) for row in (one, other))
    return ends is not None and others is not None and ends[0] <= others[1] and others[0] <= ends[1]
