"""The plain trace formats, ``csv`` and ``jsonl``: arrival times and token counts, with optional attributes.

``jsonl`` is also the format to which the requests of a run are exported. It has a few columns that only exports need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from simqueue.datafiles.columns import Columns
from simqueue.datafiles.csvtable import read_tables
from simqueue.workload.inline import token_pieces
from simqueue.workload.traces.base import MOMENTS, TraceRows, times, token_counts
from simqueue.workload.traces.formats import PLAIN_COLUMNS, ReadOptions, TimeUnit, guess_format
from simqueue.workload.traces.jsonlines import JsonTable, read_json_tables

_LABELS = {"request_id": "request_id", "class": "request_class", "client": "client", "session": "session"}
_INTEGERS = ("priority", "output_stream", "attempt")
_TICKS: dict[TimeUnit, int] = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


class PlainReader:
    """Reader of ``arrival_s,prompt_tokens,output_tokens`` and optional columns (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; times are floats, as written in the file."""
        for table in read_tables(path, label, partial(guess_format, expected="csv"), at_once=at_once):
            yield _rows(table, options)


class JsonLinesReader:
    """Reader of the same columns as JSON objects, one per line, with ``prompt`` as token pieces (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; times are floats, as written in the file."""
        for table in read_json_tables(path, label, "jsonl", at_once):
            rows = _rows(table, options)
            name = options.columns.get("prompt", "prompt")
            yield _with_prompts(rows, table, name) if name in table.names else rows


def _rows(table: Columns, options: ReadOptions) -> TraceRows:
    name = {column: options.columns.get(column, column) for column in PLAIN_COLUMNS}
    for column in options.columns:
        table.text(options.columns[column])  # a renamed column must be there, even an optional one
    rows = TraceRows(
        table.label,
        table.lines,
        times(table, name["arrival_s"]),
        _TICKS[options.time_unit],
        token_counts(table, name["prompt_tokens"]),
        token_counts(table, name["output_tokens"]),
    )
    return replace(rows, more=_optional(rows, table, name))


def _optional(rows: TraceRows, table: Columns, name: Mapping[str, str]) -> dict[str, Any]:
    """Return the optional columns that the file has; an empty cell is None."""
    more: dict[str, Any] = {}
    for column, attribute in _LABELS.items():
        if name[column] in table.names:
            more[attribute] = [cell or None for cell in table.text(name[column])]
    more |= {column: _integers(table, column, name) for column in _INTEGERS if name[column] in table.names}
    more |= {column: _moments(rows, table, column, name) for column in MOMENTS if name[column] in table.names}
    if any(request_id is None for request_id in more.get("request_id", ())):
        raise rows.wrong(more["request_id"].index(None), "request_id is empty")
    return more


def _integers(table: Columns, column: str, name: Mapping[str, str]) -> list[int | None]:
    least = -(2**31) if column == "priority" else 0
    texts = table.text(name[column])
    numbers = table.integers(name[column], least=least, most=2**62, empty=0)
    return [number if text else None for number, text in zip(numbers, texts, strict=True)]


def _moments(rows: TraceRows, table: Columns, column: str, name: Mapping[str, str]) -> list[float | None]:
    """Return a column of times in seconds: a request is wanted before its arrival, other moments are after it."""
    texts = table.text(name[column])
    moments = np.array(table.floats(name[column], least=0, empty=0.0), dtype=np.float64) / rows.ticks_per_s
    given = np.array([bool(text) for text in texts])
    arrival_s = rows.time / rows.ticks_per_s
    bad = np.flatnonzero(given & (moments > arrival_s if column == "wanted_s" else moments < arrival_s))
    if len(bad):
        row = int(bad[0])
        side = "after" if column == "wanted_s" else "before"
        raise rows.wrong(
            row, f"{column} {moments[row]:g} is {side} arrival_s {arrival_s[row]:g}; both are times of the file"
        )
    return [moment if text else None for moment, text in zip(moments.tolist(), texts, strict=True)]


def _with_prompts(rows: TraceRows, table: JsonTable, name: str) -> TraceRows:
    prompts: list[Any] = []
    for row, (cell, tokens) in enumerate(zip(table.cells(name), rows.prompt_tokens.tolist(), strict=True)):
        try:
            prompts.append(None if cell is None else token_pieces(cell, tokens))
        except ValueError as error:
            raise rows.wrong(row, f"{name}: {error}") from None
    return replace(rows, more={**rows.more, "prompt": prompts})
