"""The plain trace formats, ``csv`` and ``jsonl``: arrival and token counts, optionally who, how urgent, which tokens.

``jsonl`` is also what a run's requests are exported to; it has a few columns that only make sense there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from simqueue.workload.inline import token_pieces
from simqueue.workload.traces.base import TICKS, ReadOptions, TraceRows
from simqueue.workload.traces.formats import PLAIN_COLUMNS
from simqueue.workload.traces.jsonlines import JsonTable, read_json_tables
from simqueue.workload.traces.table import Cells, read_tables

_LABELS = {"request_id": "request_id", "class": "request_class", "client": "client", "session": "session"}
_NUMBERS = ("priority", "output_stream", "attempt")
_MOMENTS = ("deadline_s", "wanted_s", "gives_up_s")


class PlainReader:
    """Reader of ``arrival_s,prompt_tokens,output_tokens`` and optional columns (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; times are the floats that the file spells."""
        for table in read_tables(path, label, "csv", at_once):
            yield _rows(table, options)


class JsonLinesReader:
    """Reader of the same as JSON objects, one a line, with ``prompt`` as token pieces (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; times are the floats that the file spells."""
        for table in read_json_tables(path, label, "jsonl", at_once):
            rows = _rows(table, options)
            name = options.columns.get("prompt", "prompt")
            yield _with_prompts(rows, table, name) if name in table.columns else rows


def _rows(table: Cells, options: ReadOptions) -> TraceRows:
    name = {column: options.columns.get(column, column) for column in PLAIN_COLUMNS}
    for column in options.columns:
        table.text(options.columns[column])  # a renamed column must be there, even an optional one
    rows = TraceRows(
        table.label,
        table.lines,
        table.floats(name["arrival_s"], least=0),
        TICKS[options.time_unit],
        table.integers(name["prompt_tokens"]),
        table.integers(name["output_tokens"]),
    )
    return replace(rows, more=_optional(rows, table, name))


def _optional(rows: TraceRows, table: Cells, name: Mapping[str, str]) -> dict[str, Any]:
    """Return the optional columns that the file has; an empty cell means: not given."""
    more: dict[str, Any] = {}
    for column, attribute in _LABELS.items():
        if name[column] in table.columns:
            more[attribute] = [cell or None for cell in table.text(name[column])]
    for column in _NUMBERS:
        if name[column] in table.columns:
            least = -(2**31) if column == "priority" else 0
            texts = table.text(name[column])
            numbers = table.integers(name[column], least=least, most=2**62, empty=0).tolist()
            more[column] = [number if text else None for number, text in zip(numbers, texts, strict=True)]
    for column in _MOMENTS:
        if name[column] in table.columns:
            moments = table.floats(name[column], least=0, empty=np.nan) / rows.ticks_per_s
            _check_moments(rows, column, moments)
            more[column] = [None if moment != moment else moment for moment in moments.tolist()]  # noqa: PLR0124  (NaN)
    if any(request_id is None for request_id in more.get("request_id", ())):
        raise rows.wrong(more["request_id"].index(None), "request_id is empty")
    return more


def _check_moments(rows: TraceRows, column: str, moments: Any) -> None:
    """A deadline lies after the arrival, and a request is wanted before it."""
    arrival_s = rows.time / rows.ticks_per_s
    bad = np.flatnonzero(moments > arrival_s if column == "wanted_s" else moments < arrival_s)
    if len(bad):
        row = int(bad[0])
        side = "after" if column == "wanted_s" else "before"
        raise rows.wrong(
            row, f"{column} {moments[row]:g} is {side} arrival_s {arrival_s[row]:g}; both are in the file's time"
        )


def _with_prompts(rows: TraceRows, table: JsonTable, name: str) -> TraceRows:
    prompts: list[Any] = []
    for row, (cell, tokens) in enumerate(zip(table.cells(name), rows.prompt_tokens.tolist(), strict=True)):
        try:
            prompts.append(None if cell is None else token_pieces(cell, tokens))
        except ValueError as error:
            raise rows.wrong(row, f"{name}: {error}") from None
    return replace(rows, more={**rows.more, "prompt": prompts})
