"""Tables that are written to Parquet files during a run, so that its memory does not grow with its length.

Arrow arrays are made from the bytes of the columns, because Arrow's own conversion would load pandas, which needs more
memory than everything else here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simqueue.simulation.recording import Column, Table


class ParquetSink:
    """Writes one table to one file, in chunks of rows (`simqueue.simulation.columns.Sink`).

    Parameters
    ----------
    path : Path
        A file that exists is removed at once, so that no table of an earlier run is read.
    """

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, columns: Mapping[str, Column]) -> None:
        """Append rows, or none to only make the table. Every call must have the same columns with the same types."""
        arrays = [_text(column) if column.dtype == object else _numbers(column) for column in columns.values()]
        rows = pa.RecordBatch.from_arrays(arrays, names=list(columns))
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, rows.schema, compression="zstd")
        if rows.num_rows:
            self._writer.write_batch(rows)

    def finish(self) -> StoredTable:
        """Close the file and return its columns, which are read on access."""
        if self._writer is not None:
            self._writer.close()
        return StoredTable(self._path)


class StoredTable(Table):
    """The columns of a Parquet file; each access reads one column. A part is one chunk of rows as it was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        schema = pq.read_schema(path)
        self._types: dict[str, pa.DataType] = dict(zip(schema.names, schema.types, strict=True))

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


def streamed_to(folder: Path) -> Callable[[str], ParquetSink]:
    """Return a function that opens the sink of a table, ``folder/TABLE.parquet``. A missing folder is created."""
    folder.mkdir(parents=True, exist_ok=True)
    return lambda table: ParquetSink(folder / f"{table}.parquet")


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
