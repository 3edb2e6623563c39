"""BurstGPT: calls of ChatGPT and GPT-4 at a university, seconds and token counts a row.

Source of the format: github.com/HPMLL/BurstGPT (CC-BY-4.0). The first version has six columns; version 1.2 adds
``Session ID`` and ``Elapsed time``. A failed call has 0 response tokens; like every row without tokens it is dropped
and counted, or refused (``zero_token_rows``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simqueue.workload.traces.base import ReadOptions, TraceRows
from simqueue.workload.traces.table import Table, read_tables


class BurstGptReader:
    """Reader of both published versions (see `TraceReader`); a session id becomes the request's session."""

    def chunks(self, path: Path, label: str, _options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; times are the seconds that the file spells."""
        return map(_rows, read_tables(path, label, "burstgpt", at_once))


def _rows(table: Table) -> TraceRows:
    more: dict[str, Any] = {}
    if "Session ID" in table.columns:
        more["session"] = [cell or None for cell in table.text("Session ID")]
    return TraceRows(
        table.label,
        table.lines,
        table.floats("Timestamp", least=0),
        1,
        table.integers("Request tokens"),
        table.integers("Response tokens"),
        more,
    )
