"""The comparison of policies as lines of texts in groups, which terminals and pages lay out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from simqueue.printable import printable
from simqueue.report.lines import UNDEFINED, Format, Line, Row, class_objectives, count, sections_of, share
from simqueue.results.latencies import OVERLOADED_SHARE
from simqueue.scenario.room import room

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView
    from simqueue.results.summary import Value

_LOPSIDED: Final = 1.25
"""If one side of an interval is this many times as long as the other, its ends are shown."""
NO_CLASS: Final = "(no class)"
_LOAD: Final = ("load", "binding", "overloaded", "bounded", OVERLOADED_SHARE)


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
    chosen = sections_of(result)
    sections = {
        title: tuple(_cells(line, rows) for line in lines if not line.says_nothing(rows))
        for title, lines in chosen.items()
    }
    left = [line for lines in chosen.values() for line in lines if line.shown is count and line.says_nothing(rows)]
    zero = tuple(line.label for line in left if line.usual == 0 and any(line.column in row for row in rows))
    shown = {title: lines for title, lines in sections.items() if lines} if rows else {}
    return Comparison(
        policies,
        shown,
        _classes(result, policies, [line for lines in chosen.values() for line in lines]),
        zero if rows else (),
    )


def rows_of_all(result: ResultView) -> list[Row]:
    """Return the rows of the summary that are of all requests, one per policy, and with them what it has room for."""
    rows = [row for row in result.summary_rows if row["request_class"] == "all"]
    policies = result.scenario.get("policies") or {}
    return [{**row, **_room(policies.get(row["policy"], {}))} for row in rows]


def _room(policy: Mapping[str, Any]) -> Row:
    """Return what a policy has room for: of a fleet all its pools together, and the longest requests if they differ."""
    groups = (policy.get("fleet") or {}).get("groups") or {}
    replicas = (policy.get("fleet") or {}).get("replicas") or 1
    parts = [(group["replicas"], room(group)) for group in groups.values()] or [(replicas, room(policy))]
    pools = [None if found.pool_tokens is None else n * found.pool_tokens for n, found in parts]
    known = [tokens for tokens in pools if tokens is not None]
    longest = {found.longest_request_tokens: None for _, found in parts}
    lengths = [tokens for tokens in longest if tokens is not None]
    return {
        "kv_pool_tokens": sum(known) if len(known) == len(parts) else None,
        "longest_request_tokens": next(iter(longest)) if len(longest) == 1 else _from_to(lengths),
    }


def _from_to(lengths: Sequence[int]) -> str | None:
    return f"{count(min(lengths))} to {count(max(lengths))}" if lengths else None


def _classes(result: ResultView, policies: Sequence[str], lines: Sequence[Line]) -> dict[str, tuple[Cells, ...]]:
    """Return the lines of workloads and classes by name; not every policy must have each name."""
    found: dict[str, dict[str, Row]] = {}
    for row in result.summary_rows:
        if row["request_class"] != "all":
            name = NO_CLASS if row["request_class"] is None else printable(str(row["request_class"]))
            found.setdefault(name, {})[str(row["policy"])] = row
    every = [row for named in found.values() for row in named.values()]
    kept = [line for line in lines if line.of_classes and not line.says_nothing(every)]
    limited = class_objectives(result) if found else {}
    made = {}
    for name, named in found.items():
        rows = [named.get(policy) for policy in policies]
        own = result.class_slo.get(name, result.slo)
        limits = [line if limit in own else replace(line, met="") for limit, line in limited.items()]
        made[name] = tuple(_cells(line, rows) for line in (*kept, *limits))
    return made


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
    value = shown(row.get(column)) + _around(row, column, shown)
    return f"{value} {_met(row.get(line.met))}" if line.met and value != UNDEFINED else value


def _around(row: Row, column: str, shown: Format) -> str:
    """Return the interval of a value: half its length, or its ends if it is lopsided; empty without one."""
    value, ends = row.get(column), _interval(row, column)
    if ends is None or not isinstance(value, int | float):
        return ""
    low, high = ends
    if max(high - value, value - low) > _LOPSIDED * min(high - value, value - low):
        return f" [{shown(low)}, {shown(high)}]"
    return f" ±{shown((high - low) / 2)}"


def _met(value: Value) -> str:
    """Return how a value is marked that has a limit; over replications it can be unclear whether it meets it."""
    return "unclear" if value is None else "met" if value else "MISSED"


def _interval(row: Row, column: str) -> tuple[float, float] | None:
    """Return the ends of a column's interval over replications; None without one."""
    low, high = row.get(f"ci_low_{column}"), row.get(f"ci_high_{column}")
    return (low, high) if isinstance(low, int | float) and isinstance(high, int | float) else None


def _best(line: Line, rows: Sequence[Row | None], texts: Sequence[str]) -> frozenset[int]:
    """Return which rows have the best value, and those that cannot be told from it; none if that is all of them."""
    known = {i: v for i, row in enumerate(rows) if row and isinstance(v := row.get(line.column), int | float)}
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
