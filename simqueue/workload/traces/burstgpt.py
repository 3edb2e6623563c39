"""BurstGPT: calls of ChatGPT and GPT-4 at a university, with seconds and token counts per row.

Source of the format: github.com/HPMLL/BurstGPT (CC-BY-4.0). The first version has six columns; version 1.2 adds
``Session ID`` and ``Elapsed time``. A failed call has 0 response tokens. Like every row without tokens it is dropped
and counted, or an error (``zero_token_rows``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from simqueue.datafiles.csvtable import Table, read_tables
from simqueue.workload.traces.base import TraceRows, token_counts
from simqueue.workload.traces.formats import ReadOptions, guess_format
from simqueue.workload.traces.timecells import read_times


class BurstGptReader:
    """Reader of both published versions (see `TraceReader`); a session id becomes the request's session."""

    def chunks(self, path: Path, label: str, _options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; times are in seconds, as written in the file."""
        return map(_rows, read_tables(path, label, partial(guess_format, expected="burstgpt"), at_once=at_once))


def _rows(table: Table) -> TraceRows:
    more: dict[str, Any] = {}
    if "Session ID" in table.names:
        more["session"] = [cell or None for cell in table.text("Session ID")]
    time, _ = read_times(table, "Timestamp", "s")
    return TraceRows(
        table.label,
        table.lines,
        time,
        token_counts(table, "Request tokens"),
        token_counts(table, "Response tokens"),
        more,
        unit=None if time.dated else "s",
    )
