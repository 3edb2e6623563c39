"""Typed columns that grow row by row; numpy sees them after the run, or a sink in chunks while it is under way."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simqueue.simulation.recording import KeptTable, Table

ROWS_AT_ONCE = 1024
STREAMED_ROWS = 32 * ROWS_AT_ONCE


class Sink(Protocol):
    """Where the rows of a table go while a run is under way."""

    def write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Take rows in; every call has the same columns of the same types."""

    def finish(self) -> Table:
        """Return all rows that were taken in. Nothing is written after that."""


Sinks = Callable[[str], Sink]
"""Name of a table -> a new sink for it."""


class Columns:
    """A table under construction: 8 bytes a number, references for text.

    Parameters
    ----------
    **kinds : str
        Column name -> 'd' (float), 'q' (integer) or 'o' (object), in the order in which `append` takes values.
    """

    def __init__(self, **kinds: str) -> None:
        self._columns: dict[str, Any] = {name: [] if kind == "o" else array(kind) for name, kind in kinds.items()}
        self._rows: list[Sequence[Any]] = []
        self._sink: Sink | None = None

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) + len(self._rows)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    def stream_to(self, sink: Sink) -> None:
        """Let rows go to `sink` in chunks, instead of being kept."""
        self._sink = sink

    def append(self, row: Sequence[Any]) -> None:
        """Add one row, values in the order of the columns."""
        rows = self._rows
        rows.append(row)
        if len(rows) == ROWS_AT_ONCE:
            self._settle()

    def extend(self, columns: Sequence[Sequence[Any] | NDArray[Any]]) -> None:
        """Add many rows, given as columns of equal length; arrays are float64 or int64, as their column is."""
        self._settle()
        for column, values in zip(self._columns.values(), columns, strict=True):
            if isinstance(values, np.ndarray):
                column.frombytes(values.tobytes())
            else:
                column.extend(values)
        self._spill()

    def arrays(self) -> Table:
        """Return the finished table as arrays: float64, int64, or object. They share memory with the table."""
        self._settle()
        if self._sink is None:
            return KeptTable(self._arrays())
        self._spill(all_rows=True)
        return self._sink.finish()

    def _settle(self) -> None:
        """Write the rows that wait into their columns; many at once cost a third of one by one."""
        if self._rows:
            for column, values in zip(self._columns.values(), zip(*self._rows, strict=True), strict=True):
                column.extend(values)
            self._rows.clear()
            self._spill()

    def _spill(self, *, all_rows: bool = False) -> None:
        """Hand rows on, always so many at a time: how files are divided does not depend on how rows came."""
        if self._sink is None:
            return
        rows = len(self) if all_rows else len(self) // STREAMED_ROWS * STREAMED_ROWS
        for first in range(0, rows, STREAMED_ROWS):
            part = slice(first, min(first + STREAMED_ROWS, rows))
            self._sink.write({name: _as_array(column[part]) for name, column in self._columns.items()})
        if rows:
            for column in self._columns.values():
                del column[:rows]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: _as_array(column) for name, column in self._columns.items()}


class Reordered(Mapping[str, NDArray[Any]]):
    """Columns with their rows sorted by one of them, which is left out; each is made when it is asked for.

    Parameters
    ----------
    columns : mapping of str to array
    by : str
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], by: str) -> None:
        self._columns = columns
        self._names = [name for name in columns if name != by]
        self._order = np.argsort(columns[by], kind="stable")

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][self._order]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _as_array(column: Any) -> NDArray[Any]:
    if isinstance(column, list):
        result = np.empty(len(column), dtype=object)
        result[:] = column
        return result
    dtype = np.float64 if column.typecode == "d" else np.int64
    return np.frombuffer(column, dtype=dtype) if column else np.empty(0, dtype=dtype)
