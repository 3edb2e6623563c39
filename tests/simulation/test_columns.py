"""Typed columns that grow row by row."""

from __future__ import annotations

import numpy as np
import pytest

from simqueue.simulation.columns import Columns


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
