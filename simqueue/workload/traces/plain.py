"""The plain trace formats: arrival times and token counts, with optional attributes, in text files and data sets.

``jsonl`` is also the format to which the requests of a run are exported. It has a few columns that only exports need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simqueue.datafiles.columns import Columns
from simqueue.datafiles.csvtable import read_tables
from simqueue.workload.inline import token_pieces
from simqueue.workload.traces.base import MOMENTS, TraceRows, token_counts
from simqueue.workload.traces.formats import PLAIN_COLUMNS, ReadOptions, guess_format
from simqueue.workload.traces.jsonlines import JsonTable, read_json_tables
from simqueue.workload.traces.timecells import read_times

if TYPE_CHECKING:
    from simqueue.datafiles.arrowtable import ArrowTable

_NEEDED = ("arrival_s", "prompt_tokens", "output_tokens")
_LABELS = {"request_id": "request_id", "class": "request_class", "client": "client", "session": "session"}
_INTEGERS = ("priority", "output_stream", "attempt")


class PlainReader:
    """Reader of ``arrival_s,prompt_tokens,output_tokens`` and optional columns (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows."""
        for table in read_tables(path, label, partial(guess_format, expected="csv"), at_once=at_once):
            yield _rows(table, options)


class JsonLinesReader:
    """Reader of the same columns as JSON objects, one per line, with ``prompt`` as token pieces (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows."""
        for table in read_json_tables(path, label, "jsonl", at_once):
            yield _with_prompts(_rows(table, options), table, options)


class ArrowReader:
    """Reader of the same columns from Parquet and Arrow files and folders of them (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows."""
        from simqueue.datafiles.arrowtable import read_arrow_tables  # noqa: PLC0415 - pyarrow is large

        wanted = {options.columns.get(column, column) for column in (*PLAIN_COLUMNS, "prompt")}
        for table in read_arrow_tables(path, label, wanted, partial(guess_format, expected="csv"), at_once):
            yield _with_prompts(_rows(table, options), table, options)


def _rows(table: Columns, options: ReadOptions) -> TraceRows:
    name = {column: options.columns.get(column, column) for column in PLAIN_COLUMNS}
    for column in options.columns:
        table.text(options.columns[column])  # a renamed column must be there, even an optional one
    for column in _NEEDED:
        if name[column] not in table.names:
            other = f"; a column of another name is given as columns: {{{column}: NAME}}"
            raise table.missing(name[column], table.names, other)
    present = {column: name[column] for column in MOMENTS if name[column] in table.names}
    time, moments = read_times(
        table, name["arrival_s"], options.unit, unit_given=options.unit_given, moments=list(present.values())
    )
    rows = TraceRows(
        table.label,
        table.lines,
        time,
        token_counts(table, name["prompt_tokens"]),
        token_counts(table, name["output_tokens"]),
        moments={column: moments[found] for column, found in present.items()},
        counted=table.counted,
        unit=None if time.dated else options.unit,
    )
    _check_sides(rows)
    return replace(rows, more=_optional(rows, table, name))


def _optional(rows: TraceRows, table: Columns, name: Mapping[str, str]) -> dict[str, Any]:
    """Return the optional columns that the file has; an empty cell is None."""
    more: dict[str, Any] = {}
    for column, attribute in _LABELS.items():
        if name[column] in table.names:
            more[attribute] = [cell or None for cell in table.text(name[column])]
    more |= {column: _integers(table, column, name) for column in _INTEGERS if name[column] in table.names}
    if any(request_id is None for request_id in more.get("request_id", ())):
        raise rows.wrong(more["request_id"].index(None), "request_id is empty")
    return more


def _integers(table: Columns, column: str, name: Mapping[str, str]) -> list[int | None]:
    least = -(2**31) if column == "priority" else 0
    texts = table.text(name[column])
    numbers = table.integers(name[column], least=least, most=2**62, empty=0)
    return [number if text else None for number, text in zip(numbers, texts, strict=True)]


def _check_sides(rows: TraceRows) -> None:
    """Check that requests are wanted before their arrival, and that their other moments are after it."""
    for column, moments in rows.moments.items():
        wrong = moments.after > 0 if column == "wanted_s" else moments.after < 0
        bad = np.flatnonzero(wrong)
        if len(bad):
            row = int(bad[0])
            side = "after" if column == "wanted_s" else "before"
            arrival_s = rows.time.at(row)
            moment_s = arrival_s + Fraction(moments.after.tolist()[row], rows.time.ticks_per_s)
            text = f"{column} {float(moment_s):g} is {side} arrival_s {float(arrival_s):g}; both are times of the file"
            raise rows.wrong(row, text)


def _with_prompts(rows: TraceRows, table: JsonTable | ArrowTable, options: ReadOptions) -> TraceRows:
    """Return the rows with the identity of their prompt tokens, if the file has it."""
    name = options.columns.get("prompt", "prompt")
    if name not in table.names:
        return rows
    prompts: list[Any] = []
    for row, (cell, tokens) in enumerate(zip(table.cells(name), rows.prompt_tokens.tolist(), strict=True)):
        try:
            prompts.append(None if cell is None else token_pieces(cell, tokens))
        except ValueError as error:
            raise rows.wrong(row, f"{name}: {error}") from None
    return replace(rows, more={**rows.more, "prompt": prompts})
