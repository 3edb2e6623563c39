"""The files of a sweep: Parquet tables that say which scenario and which axes they are of."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simqueue.errors import InputError
from simqueue.outputs import reserved_file
from simqueue.outputs.place import shown
from simqueue.sweeps.store import STORE

if TYPE_CHECKING:
    import pandas as pd

ROWS, CLASSES = "rows.parquet", "classes.parquet"
ABOUT: Final = b"simqueue"
"""Key of the metadata of a table: what it is of, as JSON."""
_TRIES, _PAUSE_S = 100, 0.1
"""Another sweep into the same folder can write the same table at the same time."""


def write_table(table: pd.DataFrame, about: Mapping[str, Any], path: Path) -> None:
    """Write a table beside its place and rename it; the same table gives the same bytes.

    Raises
    ------
    InputError
        If the file cannot be written.
    RunError
        If writing fails; an earlier file is then unchanged.
    """
    content = _parquet(table, about)
    for left in reversed(range(_TRIES)):
        try:
            with reserved_file(path) as place:
                place.write_bytes(content)
        except InputError as error:
            if not left or "another run" not in str(error):
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _parquet(table: pd.DataFrame, about: Mapping[str, Any]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - pyarrow loads slowly
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    made = pa.Table.from_pandas(table, preserve_index=False)
    text = json.dumps(about, ensure_ascii=False, sort_keys=True, default=repr)
    buffer = io.BytesIO()  # in memory: a writer to a full disk complains when it is deleted
    pq.write_table(
        made.replace_schema_metadata({**(made.schema.metadata or {}), ABOUT: text.encode()}),
        buffer,
        compression="zstd",
    )
    return buffer.getvalue()


def read_table(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table and what it is of.

    Raises
    ------
    InputError
        If there is none, or it is not of a sweep.
    """
    import pyarrow as pa  # noqa: PLC0415 - pyarrow loads slowly
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    if not path.is_file():
        rest = "the sweep has not ended; run its command again" if (path.parent / STORE).is_file() else "no sweep here"
        raise InputError(f"{shown(path)}: there is no such file: {rest}")
    try:
        made = pq.read_table(path)
        about: dict[str, Any] = json.loads((made.schema.metadata or {})[ABOUT])
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        why = "it has no note of a sweep" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise InputError(f"{shown(path)}: is no table of a sweep: {why}") from None
    frame: pd.DataFrame = made.to_pandas()
    return frame, about
