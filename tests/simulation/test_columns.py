"""Typed columns that grow row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simqueue.simulation import columns
from simqueue.simulation.columns import Columns
from simqueue.simulation.recording import KeptTable, Table


def test_rows_come_back_as_typed_arrays() -> None:
    """Floats are float64, integers int64, everything else objects; values and order are those appended."""
    table = Columns(time_s="d", count="q", name="o")
    table.append((0.1, 2**40, "x"))
    table.append((float("nan"), -1, None))
    arrays = table.arrays()
    assert len(table) == 2
    assert [(name, column.dtype) for name, column in arrays.items()] == [
        ("time_s", np.float64),
        ("count", np.int64),
        ("name", np.object_),
    ]
    assert arrays["count"].tolist() == [2**40, -1]
    assert arrays["name"].tolist() == ["x", None]
    np.testing.assert_array_equal(arrays["time_s"], [0.1, np.nan])


def test_empty_table_keeps_its_types() -> None:
    """A table without rows has columns of length 0 with the types of a full one."""
    arrays = Columns(time_s="d", count="q", name="o").arrays()
    assert [(len(column), column.dtype) for column in arrays.values()] == [(0, np.float64), (0, np.int64), (0, object)]


def test_sequences_stay_single_objects() -> None:
    """A list in an object column is one value, not a row of values."""
    table = Columns(what="o")
    table.append(([1, 2],))
    assert table.arrays()["what"].tolist() == [[1, 2]]


def test_wrong_number_of_values_is_an_error() -> None:
    """A row with a value too many or too few is refused, at the latest when the arrays are asked for."""
    for row in [(1.0,), (1.0, 2, 3)]:
        table = Columns(time_s="d", count="q")
        table.append(row)
        with pytest.raises(ValueError, match="argument 2 is"):
            table.arrays()


class Chunks:
    """A sink that keeps what it is given, part by part."""

    def __init__(self) -> None:
        self.parts: list[list[int]] = []

    def write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Keep one part."""
        self.parts.append(columns["count"].tolist())

    def finish(self) -> Table:
        """Return a table without rows: the parts are looked at."""
        return KeptTable()


def test_rows_keep_their_order_however_they_are_added() -> None:
    """Single rows, then a block of rows, then a single row."""
    table = Columns(count="q", name="o")
    table.append((1, "a"))
    table.append((2, "b"))
    table.extend((np.array([3, 4]), ["c", "d"]))
    table.append((5, "e"))
    arrays = table.arrays()
    assert arrays["count"].tolist() == [1, 2, 3, 4, 5]
    assert arrays["name"].tolist() == ["a", "b", "c", "d", "e"]


def test_a_sink_gets_parts_of_equal_length_as_soon_as_they_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 3 rows in a part, 4 and 4 rows make 2 parts during the run, and the last 2 rows come at the end."""
    monkeypatch.setattr(columns, "STREAMED_ROWS", 3)
    table, sink = Columns(count="q"), Chunks()
    table.stream_to(sink)
    table.extend((range(4),))
    assert (sink.parts, len(table)) == ([[0, 1, 2]], 1)
    table.extend((range(4, 8),))
    assert (sink.parts, len(table)) == ([[0, 1, 2], [3, 4, 5]], 2)
    table.arrays()
    assert sink.parts == [[0, 1, 2], [3, 4, 5], [6, 7]]
