"""The plain trace format, ``csv``: arrival in seconds and token counts, optionally who and how urgent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.workload.traces.base import TraceRows
from simqueue.workload.traces.table import Table, read_table

_REQUIRED = ("arrival_s", "prompt_tokens", "output_tokens")
_OPTIONAL = ("request_id", "priority", "deadline_s", "class")


class PlainReader:
    """Reader of ``arrival_s,prompt_tokens,output_tokens`` and optional columns (see `TraceReader`)."""

    renames: tuple[str, ...] = _REQUIRED + _OPTIONAL
    starts_at_zero = True

    def read(self, path: Path, label: str, columns: Mapping[str, str]) -> TraceRows:
        """Return all rows; times are the floats that the file spells."""
        table = read_table(path, label, "csv")
        name = {column: columns.get(column, column) for column in self.renames}
        for column in columns:
            table.text(name[column])  # a renamed column must be there, even an optional one
        rows = TraceRows(
            label,
            table.lines,
            table.floats(name["arrival_s"], least=0),
            1,
            table.integers(name["prompt_tokens"]),
            table.integers(name["output_tokens"]),
        )
        return _with_optional(rows, table, name)


def _with_optional(rows: TraceRows, table: Table, name: Mapping[str, str]) -> TraceRows:
    """Return the rows with the optional columns that the file has; an empty cell means: not given."""
    there = [column for column in _OPTIONAL if name[column] in table.columns]
    if "request_id" in there:
        ids = table.text(name["request_id"])
        _check_unique(rows, ids)
        rows = replace(rows, request_id=ids)
    if "class" in there:
        rows = replace(rows, request_class=tuple(cell or None for cell in table.text(name["class"])))
    if "priority" in there:
        rows = replace(rows, priority=table.integers(name["priority"], least=-(2**31), most=2**31, empty=0))
    if "deadline_s" in there:
        deadline_s = table.floats(name["deadline_s"], least=0, empty=np.nan)
        _check_deadlines(rows, deadline_s)
        rows = replace(rows, deadline_s=deadline_s)
    return rows


def _check_deadlines(rows: TraceRows, deadline_s: NDArray[np.float64]) -> None:
    early = np.flatnonzero(deadline_s < rows.time)
    if len(early):
        row = int(early[0])
        raise rows.wrong(
            row, f"deadline_s {deadline_s[row]:g} is before arrival_s {rows.time[row]:g}; both are in the file's time"
        )


def _check_unique(rows: TraceRows, ids: tuple[str, ...]) -> None:
    first: dict[str, int] = {}
    for row, request_id in enumerate(ids):
        if not request_id:
            raise rows.wrong(row, "request_id is empty")
        if request_id in first:
            raise rows.wrong(row, f"request_id '{request_id}' is used already in line {rows.lines[first[request_id]]}")
        first[request_id] = row
