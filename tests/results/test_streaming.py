"""Tables in Parquet files against the same tables in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simqueue.results.streaming import StoredTable, streamed_to
from simqueue.results.summary import summarize
from simqueue.simulation.recording import Column

texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
rows = st.tuples(st.floats(), st.integers(-(2**63), 2**63 - 1), texts)


def columns_of(chunk: list[tuple[float, int, str | None]]) -> dict[str, Column]:
    """Return rows as a column of floats, one of integers and one of text."""
    words = np.empty(len(chunk), dtype=object)
    words[:] = [word for _, _, word in chunk]
    numbers = np.array([number for _, number, _ in chunk], dtype=np.int64)
    return {"time_s": np.array([time_s for time_s, _, _ in chunk], dtype=np.float64), "tokens": numbers, "word": words}


def stored(columns: Mapping[str, Column], folder: Path, name: str, rows_at_once: int) -> StoredTable:
    """Write a table in chunks and return what its sink returns."""
    sink = streamed_to(folder)(name)
    for first in range(0, max(1, len(next(iter(columns.values())))), rows_at_once):
        sink.write({key: column[first : first + rows_at_once] for key, column in columns.items()})
    return sink.finish()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(chunks=st.lists(st.lists(rows, max_size=12), min_size=1, max_size=4))
def test_what_is_read_is_what_was_written(chunks: list[list[Any]], tmp_path: Path) -> None:
    """Floats keep every bit, NaN and negative zero included, integers their 64 bits, text its None and its letters."""
    sink = streamed_to(tmp_path)("table")
    for chunk in chunks:
        sink.write(columns_of(chunk))
    table, whole = sink.finish(), columns_of([row for chunk in chunks for row in chunk])
    assert list(table) == list(whole)
    assert table["time_s"].tobytes() == whole["time_s"].tobytes()
    assert table["tokens"].tobytes() == whole["tokens"].tobytes()
    assert table["word"].tolist() == whole["word"].tolist()
    assert [table[name].dtype for name in table] == [column.dtype for column in whole.values()]


def test_parts_are_the_chunks_in_order(tmp_path: Path) -> None:
    """Going through the parts gives the columns that are asked for, a chunk at a time, as often as wanted."""
    table = stored({"a": np.arange(10), "b": np.arange(10) / 3}, tmp_path, "table", 4)
    for _ in range(2):
        assert [{name: part[name].tolist() for name in part} for part in table.parts("a")] == [
            {"a": [0, 1, 2, 3]},
            {"a": [4, 5, 6, 7]},
            {"a": [8, 9]},
        ]


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    """Asking for a column that is not there names it, whole or in parts."""
    table = stored({"a": np.arange(3)}, tmp_path, "table", 2)
    with pytest.raises(KeyError, match="b"):
        table["b"]
    with pytest.raises(KeyError, match="b"):
        list(table.parts("a", "b"))


def test_equal_words_of_a_chunk_are_one_object(tmp_path: Path) -> None:
    """A column of a few words does not take the room of a text in each row."""
    table = stored({"status": np.array(["finished", None] * 500, dtype=object)}, tmp_path, "table", 1000)
    assert len({id(word) for word in table["status"]}) == 2


@pytest.mark.parametrize("rows_at_once", [1, 2, 100])
def test_a_summary_of_files_is_that_of_memory(
    rows_at_once: int, preempted_pair: Any, record: Any, tmp_path: Path
) -> None:
    """Every value of the summary has the same bits, however the tables were cut into chunks."""
    steps = [{"start_s": i / 7, "duration_s": (i % 5 + 1) / 49, "decode_seqs": i % 11} for i in range(97)]
    many = record(
        [{"request_id": str(i), "finish_s": 15.0} for i in range(9)], steps, [(1 / (i + 1), i) for i in range(97)]
    )
    for kept in (preempted_pair, many):
        tables = {
            name: stored(getattr(kept, name), tmp_path, name, rows_at_once) for name in ("requests", "steps", "gaps")
        }
        assert repr(summarize("p", 0, replace(kept, **tables))) == repr(summarize("p", 0, kept))


def test_streaming_does_not_load_pandas(tmp_path: Path) -> None:
    """Writing and reading a table loads no pandas, which alone takes more memory than a long run."""
    program = (
        "import sys, pathlib, numpy as np; from simqueue.results.streaming import streamed_to;"
        f"sink = streamed_to(pathlib.Path({str(tmp_path)!r}))('t');"
        "sink.write({'a': np.arange(3), 'b': np.array(['x', None, 'y'], dtype=object)});"
        "table = sink.finish(); table['a'], table['b']; print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
