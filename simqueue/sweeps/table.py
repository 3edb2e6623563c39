"""The tables of a sweep: one row per cell, policy and replication, made from the store in the order of the design."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from simqueue.errors import RunError
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.fleets import FLEET_TYPES
from simqueue.results.summary import SUMMARY_TYPES, column_type
from simqueue.sweeps.axes import Axis
from simqueue.sweeps.outcome import Outcome, outcome_of
from simqueue.sweeps.running import Fate
from simqueue.sweeps.store import Store

if TYPE_CHECKING:
    import pandas as pd

DONE, FAILED = "done", "failed"
CELL, STATUS, ERROR, WARNINGS = "cell", "status", "error", "warnings"
_OWN: Final = {CELL: "int64", STATUS: "string", ERROR: "string", WARNINGS: "string"}
SHARE_OF_CAPACITY: Final = ".share_of_capacity"
"""End of the name of the column with what an axis of shares of the capacity was given."""
_CLASS: Final = "request_class"
_MOST_EXACT: Final = 2**53
"""Largest whole number up to which floats have all."""

Record = dict[str, Any]


def axis_columns(axes: Sequence[Axis]) -> tuple[str, ...]:
    """Return the name of the column of each axis: its key, after ``axis.`` if the summary has such a column."""
    taken = SUMMARY_TYPES | FLEET_TYPES | _OWN
    return tuple(f"axis.{axis.key}" if axis.key in taken else axis.key for axis in axes)


def tables(
    axes: Sequence[Axis], given: Sequence[Sequence[Any]], fates: Sequence[Fate], store: Store
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of all requests, and those of single classes of requests.

    Parameters
    ----------
    axes : sequence of Axis
    given : sequence of sequence
        What the design gives to the axes of each cell.
    fates : sequence of Fate
        What became of each cell.
    store : Store

    Raises
    ------
    RunError
        If the store lacks a cell that is done, or cannot be read.
    """
    outcomes = _outcomes(fates, store)
    parts = [_cell(number, fate, outcomes) for number, fate in enumerate(fates)]
    columns = axis_columns(axes)
    of_axes = _of_axes(axes, columns, given, fates)
    everything = [[row for row in part if row.get(_CLASS, ALL_CLASSES) == ALL_CLASSES] for part in parts]
    classes = [[row for row in part if row.get(_CLASS, ALL_CLASSES) != ALL_CLASSES] for part in parts]
    return _frame(everything, of_axes), _frame(classes, of_axes)


def _outcomes(fates: Sequence[Fate], store: Store) -> dict[str, Outcome]:
    wanted = dict.fromkeys(fate.key for fate in fates if fate.key is not None and not fate.error)
    return {key: outcome_of(text) for key, text in store.outcomes(list(wanted))}


def _cell(number: int, fate: Fate, outcomes: Mapping[str, Outcome]) -> list[Record]:
    """Return the rows of a cell; one with its error if it failed."""
    if fate.error:
        return [{CELL: number, STATUS: FAILED, ERROR: fate.error}]
    found = outcomes.get(fate.key or "")
    if found is None:
        raise RunError(f"cell {number} is not in the store any more; run the same command again")
    warnings = "\n".join(found.warnings) or None
    return [{CELL: number, STATUS: DONE, ERROR: None, **row, WARNINGS: warnings} for row in found.rows]


def _of_axes(
    axes: Sequence[Axis], columns: Sequence[str], given: Sequence[Sequence[Any]], fates: Sequence[Fate]
) -> dict[str, list[Any]]:
    """Return the columns of the axes, with one value per cell."""
    made: dict[str, list[Any]] = {}
    for number, (axis, column) in enumerate(zip(axes, columns, strict=True)):
        if not axis.of_capacity:
            made[column] = [fate.values[number] for fate in fates]
            continue
        settled = (fate.values[number] for fate in fates)
        made[column] = [value if isinstance(value, int | float) else None for value in settled]
        made[column + SHARE_OF_CAPACITY] = [values[number].of_capacity for values in given]
    return made


def _frame(parts: Sequence[Sequence[Record]], of_axes: Mapping[str, list[Any]]) -> pd.DataFrame:
    from pandas import DataFrame, Series  # noqa: PLC0415 - pandas loads slowly

    rows = [row for part in parts for row in part]
    cells = [number for number, part in enumerate(parts) for _ in part]
    made: dict[str, Any] = {CELL: Series(cells, dtype="int64")}
    for name, values in of_axes.items():
        typed, kind = _typed(values)
        made[name] = Series([typed[number] for number in cells], dtype=kind)
    for name in _columns(rows):
        made[name] = Series([row.get(name) for row in rows], dtype=_kind(name))
    return DataFrame(made)


def _columns(rows: Iterable[Record]) -> Iterator[str]:
    """Yield the columns after those of the axes: policy, replication, status, error, those of summaries, warnings."""
    further = dict.fromkeys(name for row in rows for name in row)
    optional = [name for name in further if name not in SUMMARY_TYPES and name not in _OWN]
    yield from ("policy", "replication", STATUS, ERROR)
    yield from (name for name in (*SUMMARY_TYPES, *optional) if name not in ("policy", "replication"))
    yield WARNINGS


def _kind(name: str) -> str:
    """Return the type of a column, which is undefined in the row of a cell that failed."""
    kind = _OWN.get(name) or column_type(name)
    return "Int64" if kind == "int64" else kind


def _typed(values: Sequence[Any]) -> tuple[list[Any], str]:
    """Return values of an axis with the type of their column: numbers, truth values, or text.

    Values of several kinds, and lists and mappings, become text as JSON has it; texts stay as they are.
    """
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return list(values), "boolean"
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        if all(isinstance(value, int) for value in known) and all(abs(value) < 2**63 for value in known):
            return list(values), "Int64"
        if all(isinstance(value, float) or abs(value) <= _MOST_EXACT for value in known):
            return [None if value is None else float(value) for value in values], "float64"
    return [value if value is None or isinstance(value, str) else _json(value) for value in values], "string"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)
