"""Typed columns that grow row by row; numpy reads them after the run, or a sink in chunks during the run."""

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
    """Where the rows of a table go during a run."""

    def write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Take rows; every call has the same columns with the same types."""

    def finish(self) -> Table:
        """Return all rows that were written. Nothing is written after that."""


Sinks = Callable[[str], Sink]
"""Name of a table -> a new sink for it."""


class SharedSink:
    """A sink that several tables write to: the rows of all of them become one table.

    Parameters
    ----------
    sink : Sink
    writers : int
        How many tables there are.
    """

    def __init__(self, sink: Sink, writers: int) -> None:
        self._sink = sink
        self._writers = writers
        self._finished = 0
        self._table: Table | None = None

    def writer(self, **fixed: int) -> Sink:
        """Return a sink for one of the tables; `fixed` are columns put before its own, the same in all of its rows."""
        return _Writer(self, fixed)

    def write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Take rows of one of the tables."""
        self._sink.write(columns)

    def finish(self) -> Table | None:
        """Note that one of the tables is complete; return all rows when the last one is."""
        self._finished += 1
        if self._finished == self._writers:
            self._table = self._sink.finish()
        return self._table


class _Writer:
    """The sink of one table that shares its sink."""

    def __init__(self, shared: SharedSink, fixed: Mapping[str, int]) -> None:
        self._shared, self._fixed = shared, fixed

    def write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        rows = len(next(iter(columns.values())))
        fixed = {name: np.full(rows, value, dtype=np.int64) for name, value in self._fixed.items()}
        self._shared.write({**fixed, **columns})

    def finish(self) -> Table:
        return self._shared.finish() or KeptTable()


class Columns:
    """A table under construction: 8 bytes per number, references for text.

    Parameters
    ----------
    **kinds : str
        Column name -> 'd' (float), 'q' (integer) or 'o' (object), in the order in which `append` takes values.
    """

    def __init__(self, **kinds: str) -> None:
        self._columns: dict[str, Any] = {name: [] if kind == "o" else array(kind) for name, kind in kinds.items()}
        self._rows: list[Sequence[Any]] = []
        self._sink: Sink | None = None
        self._rows_at_once: int | None = None

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) + len(self._rows)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    def stream_to(self, sink: Sink, rows_at_once: int | None = None) -> None:
        """Write rows to `sink` in chunks (of `STREAMED_ROWS`, or of this many), instead of keeping them."""
        self._sink = sink
        self._rows_at_once = rows_at_once

    def append(self, row: Sequence[Any]) -> None:
        """Add one row, values in the order of the columns."""
        rows = self._rows
        rows.append(row)
        if len(rows) == ROWS_AT_ONCE:
            self._flush()

    def extend(self, columns: Sequence[Sequence[Any] | NDArray[Any]]) -> None:
        """Add many rows, given as columns of equal length; arrays are float64 or int64, as their column is."""
        self._flush()
        for column, values in zip(self._columns.values(), columns, strict=True):
            if isinstance(values, np.ndarray):
                column.frombytes(values.tobytes())
            else:
                column.extend(values)
        self._spill()

    def arrays(self) -> Table:
        """Return the finished table as arrays: float64, int64, or object. They share memory with the table."""
        self._flush()
        if self._sink is None:
            return KeptTable(self._arrays())
        self._spill(all_rows=True)
        return self._sink.finish()

    def _flush(self) -> None:
        """Move buffered rows into the columns; many at once cost a third of one by one."""
        if self._rows:
            for column, values in zip(self._columns.values(), zip(*self._rows, strict=True), strict=True):
                column.extend(values)
            self._rows.clear()
            self._spill()

    def _spill(self, *, all_rows: bool = False) -> None:
        """Write rows to the sink, always the same number at a time: chunks do not depend on how rows were added.

        With `all_rows`, the sink gets the columns even if there are no rows.
        """
        if self._sink is None:
            return
        size = self._rows_at_once or STREAMED_ROWS
        rows = len(self) if all_rows else len(self) // size * size
        for first in range(0, max(rows, int(all_rows)), size):
            part = slice(first, min(first + size, rows))
            self._sink.write({name: _as_array(column[part]) for name, column in self._columns.items()})
        if rows:
            for column in self._columns.values():
                del column[:rows]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: _as_array(column) for name, column in self._columns.items()}


class Reordered(Mapping[str, NDArray[Any]]):
    """Columns with their rows sorted by one of them, which is left out; each is made when it is read.

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
