"""Tables that are written to Parquet files during a run, so that its memory does not grow with its length.

The rows come in chunks. Each chunk is written as a Parquet file of its own, so that what was written can be read if the
process is killed. At the end they become one file. All tables of a run are in a partial folder until the last one is
complete (`simqueue.outputs`).

Arrow arrays are made from the bytes of the columns, because Arrow's own conversion would load pandas, which needs more
memory than everything else here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simqueue.errors import RunError
from simqueue.outputs import Place, reserved_folder
from simqueue.outputs.earlier import write_marker
from simqueue.outputs.place import reason
from simqueue.simulation.recording import Column, Table

MARKER: Final = "simqueue-stream.json"
"""File in a folder of streamed tables: the version that wrote them, and their names."""


class Stream:
    """The tables of a run, one folder per policy.

    Parameters
    ----------
    place : Place
        The folder to write.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folders: list[TableFolder] = []

    def sinks(self, policy: str) -> Callable[[str], ParquetSink]:
        """Return a function that opens the sink of a table of a policy."""
        folder = TableFolder(self._place.new / policy)
        self._folders.append(folder)
        return streamed_to(folder)

    def finish(self, version: str) -> None:
        """Give the folder its name, after the last table is complete.

        Raises
        ------
        RunError
            If that fails; an earlier stream in this folder is then unchanged.
        """
        with self._place.writing() as new:
            files = sorted(path.relative_to(new).as_posix() for path in new.glob("*/*.parquet"))
            write_marker(new, MARKER, version, files)
        for folder in self._folders:
            folder.path = self._place.target / folder.path.name


@contextmanager
def stream_in(path: str | Path | Place) -> Iterator[Stream]:
    """Reserve a folder for streamed tables. If they do not become complete, those that were written are kept.

    Raises
    ------
    InputError
        If the folder cannot be written, or contains anything but an earlier stream.
    """
    with reserved_folder(path, MARKER, keep_partial=True) as place:
        yield Stream(place)


class TableFolder:
    """A folder of tables, which can be renamed when all of them are complete.

    Parameters
    ----------
    path : Path
        Where it is now.
    """

    def __init__(self, path: Path) -> None:
        self.path = path


class ParquetSink:
    """Writes one table, in chunks of rows (`simqueue.simulation.columns.Sink`).

    Each chunk is a file ``TABLE/part-N.parquet`` until the table is complete. What a run that was killed has left there
    is removed.

    Parameters
    ----------
    folder : TableFolder
    table : str
    """

    def __init__(self, folder: TableFolder, table: str) -> None:
        self._folder, self._table = folder, table
        self._parts = folder.path / table
        self._count = 0
        with _one_line(self._parts):
            shutil.rmtree(self._parts, ignore_errors=True)
            self._parts.mkdir(parents=True)

    def write(self, columns: Mapping[str, Column]) -> None:
        """Append rows, or none to only make the table. Every call must have the same columns with the same types.

        Raises
        ------
        RunError
            If they cannot be written.
        """
        arrays = [_text(column) if column.dtype == object else _numbers(column) for column in columns.values()]
        rows = pa.RecordBatch.from_arrays(arrays, names=list(columns))
        content = pa.BufferOutputStream()
        with pq.ParquetWriter(content, rows.schema, compression="zstd") as writer:
            if rows.num_rows:
                writer.write_batch(rows)
        path = self._parts / f"part-{self._count:06}.parquet"
        with _one_line(path), _beside(path) as new:
            new.write_bytes(content.getvalue())
        self._count += 1

    def finish(self) -> StoredTable:
        """Make one file of all chunks and return its columns, which are read on access.

        Raises
        ------
        RunError
            If it cannot be written; the chunks are then still there.
        """
        path = self._folder.path / f"{self._table}.parquet"
        with _one_line(path):
            parts = sorted(self._parts.glob("part-*.parquet"))
            if len(parts) == 1:
                parts[0].replace(path)
            else:
                with _beside(path) as new:
                    _join(parts, new)
            shutil.rmtree(self._parts)
        return StoredTable(self._folder, self._table)


class StoredTable(Table):
    """The columns of a Parquet file; each access reads one column. A part is one chunk of rows as it was written."""

    def __init__(self, folder: TableFolder, table: str) -> None:
        self._folder, self._table = folder, table
        schema = pq.read_schema(self.path)
        self._types: dict[str, pa.DataType] = dict(zip(schema.names, schema.types, strict=True))

    @property
    def path(self) -> Path:
        """Where the file is now."""
        return self._folder.path / f"{self._table}.parquet"

    def __getitem__(self, name: str) -> Column:
        kind = self._types[name]
        column = np.empty(self._rows(), dtype=object if pa.types.is_string(kind) else kind.to_pandas_dtype())
        start = 0
        for part in self.parts(name):
            end = start + len(part[name])
            column[start:end] = part[name]
            start = end
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def parts(self, *names: str) -> Iterator[Mapping[str, Column]]:
        """Yield the rows in order, one chunk at a time."""
        for name in names:
            if name not in self._types:
                raise KeyError(name)
        with pq.ParquetFile(self.path) as file:
            for index in range(file.num_row_groups):
                rows = file.read_row_group(index, columns=list(names), use_threads=False)
                yield {name: _column(rows.column(name).combine_chunks()) for name in names}

    def _rows(self) -> int:
        return int(pq.read_metadata(self.path).num_rows)


def streamed_to(folder: Path | TableFolder) -> Callable[[str], ParquetSink]:
    """Return a function that opens the sink of a table, ``folder/TABLE.parquet``. A missing folder is created."""
    within = TableFolder(folder) if isinstance(folder, Path) else folder
    return lambda table: ParquetSink(within, table)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Provide a path to write to, which gets the name of `path` at the end."""
    new = path.with_name(f"{path.name}.tmp")
    yield new
    new.replace(path)


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    """Report an OSError as a failed run."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {reason(error)}") from error


def _join(parts: list[Path], path: Path) -> None:
    """Write one file with the chunks of all parts."""
    with path.open("wb") as file:
        writer = pq.ParquetWriter(file, pq.read_schema(parts[0]), compression="zstd")
        try:
            for part in parts:
                with pq.ParquetFile(part) as chunk:
                    for rows in chunk.read(use_threads=False).combine_chunks().to_batches():
                        writer.write_batch(rows)
            writer.close()
        except OSError:
            writer.is_open = False  # or it tries again when it is deleted, and prints a traceback
            raise


def _numbers(column: Column) -> pa.Array:
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])


def _text(words: Column) -> pa.Array:
    encoded = [b"" if word is None else word.encode() for word in words]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    known = np.packbits(np.array([word is not None for word in words], dtype=np.bool_), bitorder="little")
    buffers = (pa.py_buffer(content) for content in (ends, b"".join(encoded), known))
    return pa.StringArray.from_buffers(len(words), *buffers)


def _column(values: pa.Array) -> Column:
    if not pa.types.is_string(values.type):
        return np.from_dlpack(values)
    # Equal words share one object, so that a status takes no more memory than a number.
    encoded = values.dictionary_encode(null_encoding="encode")
    words = np.empty(len(encoded.dictionary), dtype=object)
    words[:] = encoded.dictionary.to_pylist()
    return np.asarray(words[np.from_dlpack(encoded.indices)])
