"""Tables that go to Parquet files while a run is under way, so that its memory does not grow with its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simqueue.simulation.recording import Column


class ParquetSink:
    """One table in one file, in chunks of rows (`simqueue.simulation.columns.Sink`).

    Parameters
    ----------
    path : Path
        Overwritten if it exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, columns: Mapping[str, Column]) -> None:
        """Append rows; every call has the same columns of the same types."""
        schema = pa.schema([(name, _kind(column)) for name, column in columns.items()])
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, schema, compression="zstd")
        self._writer.write_table(pa.table(dict(columns), schema=schema))

    def finish(self) -> Mapping[str, Column]:
        """Close the file and return its columns, each read when it is asked for."""
        if self._writer is not None:
            self._writer.close()
        return StoredColumns(self._path)


class StoredColumns(Mapping[str, Column]):
    """The columns of a Parquet file; each lookup reads one of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: list[str] = list(pq.read_schema(path).names)

    def __getitem__(self, name: str) -> Column:
        if name not in self._names:
            raise KeyError(name)
        column = pq.read_table(self.path, columns=[name]).column(0)
        if pa.types.is_string(column.type):
            return np.array(column.to_pylist(), dtype=object)
        return np.asarray(column.to_numpy())

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def streamed_to(folder: Path) -> Callable[[str], ParquetSink]:
    """Return what makes the sink of a table: ``folder/TABLE.parquet``. The folder is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    return lambda table: ParquetSink(folder / f"{table}.parquet")


def _kind(column: Column) -> pa.DataType:
    return pa.string() if column.dtype == object else pa.from_numpy_dtype(column.dtype)
