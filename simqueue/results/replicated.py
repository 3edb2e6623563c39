"""One summary row for several replications: means with Student-t intervals over the replications' own values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from simqueue.results.latencies import parsed
from simqueue.results.steadiness import shown
from simqueue.results.summary import SUMMARY_TYPES, column_type
from simqueue.statistics.intervals import CONFIDENCE, carries_percentile, mean_interval

if TYPE_CHECKING:
    from simqueue.results.summary import Row, Value

_SAME: Final = ("policy", "request_class", "load", "binding", "window")
_LARGEST: Final = ("max_itl_ms", "max_concurrent_requests")
_NO_INTERVAL: Final = (*_SAME, *_LARGEST, "duration_s", "measured_duration_s", "warmup_s")


def interval_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of the summary that have ci_low_ and ci_high_ columns if there are replications."""
    return tuple(name for name in names if column_type(name) == "float64" and name not in _NO_INTERVAL)


INTERVAL_COLUMNS: Final = interval_columns(SUMMARY_TYPES)
"""Those of every summary."""


def pooled_rows(rows: Iterable[Row], confidence: float = CONFIDENCE) -> list[Row]:
    """Return one row per policy and request class from the rows of all replications.

    Counts are summed over the replications, largest values are the largest of all, and other quantities are averaged.
    Intervals are over the replications' own values, which are independent; requests of one run are not. A percentile
    with too few observations has no interval.

    Parameters
    ----------
    rows : iterable of dict
        The rows of all replications, as returned by `simqueue.results.summary.summarize`.
    confidence : float
        Nominal coverage of the intervals.
    """
    groups: dict[tuple[Value, Value], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["policy"], row["request_class"]), []).append(row)
    return [_pooled(group, confidence) for group in groups.values()]


def too_small(row: Mapping[str, Value], column: str) -> str | None:
    """Return a note if a percentile has fewer values than it needs for one to lie beyond it; else None."""
    found = missing_values(row, column)
    return None if found is None else f"{column}: n too small: {found[0]} values, at least {found[1]} are needed"


def missing_values(row: Mapping[str, Value], column: str) -> tuple[int, int] | None:
    """Return how many values a percentile has and how many it needs for one to lie beyond it; None if it has enough."""
    found = parsed(column)
    q = None if found is None else found[0]
    n = _sample_size(row, column)
    if q is None or n is None or row.get(column) is None or carries_percentile(n, q):
        return None
    return n, values_needed(q)


def values_needed(q: float) -> int:
    """Return the least number of values of which one is expected beyond a percentile."""
    return math.ceil(100 / min(q, 100 - q) - 1e-6)


def _pooled(rows: list[Row], confidence: float) -> Row:
    made: Row = {name: _value(name, column_type(name), rows) for name in rows[0]}
    flags = [row["overloaded"] for row in rows if row["overloaded"] is not None]
    made |= {
        "replication": None,
        "replications": len(rows),
        "overloaded": 2 * sum(map(bool, flags)) > len(flags) if flags else None,
    }
    for name in interval_columns(rows[0]):
        made |= _interval(name, rows, confidence)
    return shown(made, overloaded=bool(made["overloaded"]))


def _value(name: str, kind: str, rows: list[Row]) -> Value:
    """Return a column's value for all replications: the first, the largest, the sum or the mean."""
    values = [row[name] for row in rows]
    known = [value for value in values if isinstance(value, int | float)]
    if name in _SAME or (name == "warmup_s" and len(set(values)) == 1):
        return values[0]
    if not known:
        return None
    if name in _LARGEST:
        return max(known)
    return sum(known) if kind in ("int64", "Int64") else sum(known) / len(known)


def _interval(name: str, rows: list[Row], confidence: float) -> Mapping[str, Value]:
    """Return both ends of a column's interval; None unless the column is defined in all replications."""
    values = [value for row in rows if isinstance(value := row[name], int | float)]
    low = high = None
    if len(values) == len(rows) and not any(too_small(row, name) for row in rows):
        found = mean_interval(values, confidence)
        low, high = found.low, found.high
    return {f"ci_low_{name}": low, f"ci_high_{name}": high}


def _sample_size(row: Mapping[str, Value], column: str) -> int | None:
    """Return the number of values behind a column, per replication."""
    if column.endswith("itl_ms"):
        size = row["itl_count"]
    else:
        size = row["measured_requests"]
        if "tpot" in column and isinstance(size, int) and isinstance(row["tpot_excluded"], int):
            size -= row["tpot_excluded"]
    runs = row.get("replications")
    return size // (runs if isinstance(runs, int) else 1) if isinstance(size, int) else None
