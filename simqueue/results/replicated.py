"""One summary row for several replications: means over replications, percentiles of all requests, and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from simqueue.results.latencies import CAPACITY, MODEL_ERROR, OVERLOADED_SHARE, parsed
from simqueue.results.samples import Samples, of_requests
from simqueue.results.steadiness import shown, unsteady
from simqueue.results.summary import SUMMARY_TYPES, column_type
from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import CONFIDENCE, Estimate, carries_percentile
from simqueue.statistics.verdict import majority

if TYPE_CHECKING:
    from simqueue.results.summary import Row, Value

SamplesOf = Callable[["Value", "Value"], Samples]
EFFECTIVE: Final = "effective_n_"
"""Begin of the columns that say how many independent observations a value is worth."""
_SAME: Final = (
    "policy",
    "request_class",
    "replicas",
    "load",
    "binding",
    *MODEL_ERROR,
    "window",
    CAPACITY,
    OVERLOADED_SHARE,
)
_LARGEST: Final = ("max_itl_ms", "max_concurrent_requests")
_NO_INTERVAL: Final = (*_SAME, *_LARGEST, "duration_s", "measured_duration_s", "warmup_s")


def interval_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of the summary that have ci_low_ and ci_high_ columns if there are replications."""
    return tuple(name for name in names if column_type(name) == "float64" and name not in _NO_INTERVAL)


INTERVAL_COLUMNS: Final = interval_columns(SUMMARY_TYPES)
"""Those of every summary."""


def pooled_rows(rows: Iterable[Row], samples_of: SamplesOf, confidence: float = CONFIDENCE) -> list[Row]:
    """Return one row per policy and request class from the rows of all replications.

    Counts are summed over the replications, and largest values are the largest of all. Means and rates are averaged,
    with intervals over the replications' own values, which are independent; requests of one run are not. A percentile
    is that of all requests together, with the replications as sections.

    Parameters
    ----------
    rows : iterable of dict
        The rows of all replications, as returned by `simqueue.results.summary.summarize`.
    samples_of : callable
        Returns the latencies behind the rows of a policy and a request class.
    confidence : float
        Nominal coverage of the intervals.
    """
    groups: dict[tuple[Value, Value], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["policy"], row["request_class"]), []).append(row)
    return [_pooled(group, samples_of(*key), confidence) for key, group in groups.items()]


def column_estimate(
    column: str, rows: Sequence[Row], samples: Samples, confidence: float = CONFIDENCE
) -> Estimate | None:
    """Return the estimate of a column over replications; None if it is not defined in all of them.

    Parameters
    ----------
    column : str
        A mean, a rate, a share or a percentile.
    rows : sequence of dict
        One per replication.
    samples : Samples
        The latencies behind the rows.
    confidence : float
    """
    values = [float(value) for row in rows if isinstance(value := row[column], int | float)]
    if len(values) != len(rows) or any(missing_values(row, column) for row in rows):
        return None
    return estimate(values, confidence, samples.percentile(column) if is_percentile(column) else None)


def is_percentile(column: str) -> bool:
    """Return whether a column is a percentile of a latency."""
    found = parsed(column)
    return found is not None and found[0] is not None


def too_small(row: Mapping[str, Value], column: str) -> str | None:
    """Return a note if a percentile has fewer values than it needs for one to lie beyond it; else None."""
    found = missing_values(row, column)
    return None if found is None else f"{column}: n too small: {found[0]} values, at least {found[1]} are needed"


def missing_values(row: Mapping[str, Value], column: str) -> tuple[int, int] | None:
    """Return how many values a percentile has and how many it needs for one to lie beyond it; None if it has enough.

    In a row of several replications it is the number of each. An empty sample has no percentile that could be wrong.
    """
    found = parsed(column)
    q = None if found is None else found[0]
    n = _sample_size(row, column)
    if q is None or not n or column not in row or carries_percentile(n, q):
        return None
    return n, values_needed(q)


def why_undefined(row: Mapping[str, Value], column: str, where: str) -> str:
    """Return why a column of one run has no value that can be used, or an empty text; `where` names the run."""
    lacks = missing_values(row, column)
    if lacks:
        return f"n too small: needs at least {lacks[1]} values a run; {where} has {lacks[0]}; make the runs longer"
    return "" if isinstance(row[column], int | float) else f"undefined for {where}"


def without_few(row: Row) -> Row:
    """Return a row without the percentiles that have too few values: there is no steady state to be read off them."""
    return {name: None if missing_values(row, name) else value for name, value in row.items()}


def values_needed(q: float) -> int:
    """Return the least number of values of which one is expected beyond a percentile."""
    return math.ceil(100 / min(q, 100 - q) - 1e-6)


def _possible(name: str, found: Estimate) -> tuple[float | None, float | None]:
    """Return the ends of an interval as far as values can be: none is below 0, and no share is above 1."""
    low = None if found.low is None else max(0.0, found.low)
    share = name.endswith(("_share", "_rate"))
    return low, min(1.0, found.high) if share and found.high is not None else found.high


def _pooled(rows: list[Row], samples: Samples, confidence: float) -> Row:
    made: Row = {name: _value(name, column_type(name), rows) for name in rows[0]}
    made |= {
        "replication": None,
        "replications": len(rows),
        **{name: majority([row[name] for row in rows]) for name in ("overloaded", "bounded")},
    }
    made |= {name: _carried(name, made, samples) for name in rows[0] if is_percentile(name)}
    for name in interval_columns(rows[0]):
        found = column_estimate(name, rows, samples, confidence)
        low, high = (None, None) if found is None else _possible(name, found)
        made |= {f"ci_low_{name}": low, f"ci_high_{name}": high}
        if of_requests(name):
            made[EFFECTIVE + name] = None if found is None else samples.effective_number(name, found)
    final = shown(made, hidden=unsteady(made))
    return {name: None if _of_hidden(name, final) else value for name, value in final.items()}


def _carried(column: str, row: Row, samples: Samples) -> Value:
    """Return a percentile of all observations together; None if they are too few for one to lie beyond it."""
    found = parsed(column)
    n = _sample_size({**row, "replications": 1}, column)
    if found is None or found[0] is None or n is None or not carries_percentile(n, found[0]):
        return None
    return samples.percentile(column)


def _of_hidden(name: str, row: Row) -> bool:
    """Return whether a column is the effective number of a value that is not shown."""
    return name.startswith(EFFECTIVE) and row[name.removeprefix(EFFECTIVE)] is None


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
