"""Parquet and Arrow files, and folders of them as Hugging Face's `datasets` writes them, in tables of rows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from simqueue.datafiles.columns import Columns, Guess
from simqueue.datafiles.limits import MOST_ROWS, MOST_TRACE_BYTES
from simqueue.datafiles.regular import UnreadableError, is_folder, is_there, open_regular
from simqueue.datafiles.text import check_file, read_json
from simqueue.errors import FileError, InputError

_ROWS_AT_ONCE: Final = 65_536
_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
_STATE: Final = "state.json"
_SHARD: Final = re.compile(r"-\d+-of-\d+$")
_SPLITS: Final = frozenset({"train", "validation", "test"})
"""Names of the parts of a data set in Hugging Face's convention: parts of one set, but not one recording."""


class ArrowTable(Columns):
    """Rows of a data set; a null is an empty cell."""

    def __init__(self, label: str, names: Sequence[str], rows: pa.Table, first: int, guess: Guess | None) -> None:
        super().__init__(label, range(first, first + len(rows)), guess, "row")
        self._names = names
        self._rows = rows

    @property
    def names(self) -> Collection[str]:
        """Names of the columns, as in the file."""
        return self._names

    def cells(self, name: str) -> list[Any]:
        """Return a column as Python values; None for nulls."""
        if name not in self._names:
            raise self.missing(name, self._names)
        values: list[Any] = self._rows.column(name).to_pylist()
        return values

    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as text; see `Columns.text`. Times are dates in UTC."""
        if name not in self._names:
            raise self.missing(name, self._names)
        column = self._rows.column(name)
        kind = column.type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            column = column.cast(pa.timestamp(kind.unit, "UTC"))
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_duration(kind):
            return tuple("" if value is None else str(value) for value in column.to_pylist())
        return tuple("" if text is None else text.strip() for text in column.cast(pa.string()).to_pylist())


def read_arrow_tables(
    path: Path, label: str, wanted: Collection[str], guess: Guess | None = None, at_once: int | None = None
) -> Iterator[ArrowTable]:
    """Read a Parquet or Arrow file, or a folder of them, in tables of `at_once` rows.

    Parameters
    ----------
    path : Path
        A file, a folder of Parquet files, or a folder that ``Dataset.save_to_disk`` has written.
    label : str
        The name of the file in messages.
    wanted : collection of str
        The columns to read, as far as they are there.
    guess : callable or None
        Returns what a file with foreign columns looks like, for messages.
    at_once : int or None
        Rows per table; None: all rows in one table.

    Raises
    ------
    InputError
        If there is no such data set, it cannot be read, or it has no rows.
    """
    files = _files(path, label)
    number = 1
    kept: list[pa.RecordBatch] = []
    names: list[str] = []
    for file, shown in files:
        with _telling(shown):
            for batch, found in _batches(file, shown, wanted, at_once or _ROWS_AT_ONCE):
                names = names or found
                if found != names:
                    raise InputError(f"{shown}: its columns are others than those of {files[0][1]}")
                if number + batch.num_rows > MOST_ROWS:
                    raise FileError(f"{label}: more than {MOST_ROWS:,} rows")
                if at_once is None:
                    kept.append(batch)
                elif batch.num_rows:
                    yield ArrowTable(label, names, pa.Table.from_batches([batch]), number, guess)
                number += batch.num_rows
    if number == 1:
        raise InputError(f"{label}: the data set has no rows")
    if at_once is None:
        with _telling(label):
            rows = pa.Table.from_batches(kept)
        yield ArrowTable(label, names, rows, 1, guess)


def _files(path: Path, label: str) -> list[tuple[Path, str]]:
    """Return the files of a data set in order, each with its name in messages."""
    if not is_folder(path):
        return [(path, label)]
    if is_there(path / _STATE):
        names = _saved_files(path, label)
    elif is_there(path / "dataset_dict.json"):
        splits = ", ".join(sorted(f"{label}/{entry.name}" for entry in path.iterdir() if is_folder(entry)))
        raise FileError(f"{label}: this folder holds several data sets; give one of {splits}")
    else:
        found = sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet")) or sorted(path.glob("*.arrow"))
        names = [file.relative_to(path).as_posix() for file in found]
    if not names:
        raise FileError(f"{label}: this folder has no Parquet files and no {_STATE} of a saved data set")
    parts = {_SHARD.sub("", Path(name).stem) for name in names}
    if len(parts) > 1 and parts & _SPLITS:
        raise FileError(f"{label}: this folder holds several data sets ({', '.join(sorted(parts))}); give one file")
    return [(path / name, f"{label}/{name}") for name in names]


def _saved_files(path: Path, label: str) -> list[str]:
    """Return the names of the files of a folder that ``save_to_disk`` has written, in order."""
    state = read_json(path / _STATE)
    if state.get("_indices_data_files"):
        raise FileError(f"{label}: rows were selected before it was saved; save it after flatten_indices()")
    listed = state.get("_data_files")
    entries = listed if isinstance(listed, list) else []
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in entries]
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise FileError(f"{label}/{_STATE}: _data_files must be a list of files of this folder")
    return [str(name) for name in names]


def _batches(
    file: Path, label: str, wanted: Collection[str], at_once: int
) -> Iterator[tuple[pa.RecordBatch, list[str]]]:
    """Yield pieces of a file with the wanted columns, each with the names of all columns."""
    check_file(file, label, MOST_TRACE_BYTES)
    start = _first_bytes(file, label)
    if start.startswith(_PARQUET):
        with pq.ParquetFile(file) as opened:
            names = list(opened.schema_arrow.names)
            _check_size(opened, label)
            for batch in opened.iter_batches(at_once, columns=[name for name in names if name in wanted]):
                yield batch, names
        return
    if not start.startswith((_ARROW_FILE, _ARROW_STREAM)):
        raise FileError(f"{label}: not a Parquet or Arrow file; formats of text files are csv, jsonl, ...")
    with pa.memory_map(str(file)) as source:
        for batch in _arrow_batches(source, in_file=start.startswith(_ARROW_FILE)):
            names = list(batch.schema.names)
            part = batch.select([name for name in names if name in wanted])
            for first in range(0, part.num_rows, at_once):
                yield part.slice(first, at_once), names


def _arrow_batches(source: Any, *, in_file: bool) -> Iterator[pa.RecordBatch]:
    if not in_file:
        yield from pa.ipc.open_stream(source)
        return
    reader = pa.ipc.open_file(source)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _check_size(opened: Any, label: str) -> None:
    """Check what a Parquet file would take in memory: a few bytes can stand for many rows."""
    groups = [opened.metadata.row_group(i) for i in range(opened.metadata.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    if opened.metadata.num_rows > MOST_ROWS or size > MOST_TRACE_BYTES:
        limit = f"{MOST_ROWS:,} rows and {MOST_TRACE_BYTES / 2**20:,.0f} MiB"
        raise FileError(f"{label}: the file is too large: it can have up to {limit} unpacked")


def _first_bytes(file: Path, label: str) -> bytes:
    try:
        with open_regular(file, MOST_TRACE_BYTES) as opened:
            return opened.read(8)
    except UnreadableError as error:
        raise FileError(f"{label}: {error}") from None


@contextmanager
def _telling(label: str) -> Iterator[None]:
    """Raise what pyarrow finds wrong as an error about the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = " ".join(str(error).split())
        raise FileError(f"{label}: cannot be read: {reason or type(error).__name__}") from None
