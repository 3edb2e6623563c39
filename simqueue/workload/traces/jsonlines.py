"""A file of JSON objects, one per line, as columns."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from simqueue.datafiles.columns import Columns
from simqueue.datafiles.limits import MOST_TRACE_BYTES
from simqueue.datafiles.text import parse_json, text_lines
from simqueue.errors import InputError
from simqueue.workload.traces.formats import guess_format, guess_json

_SHOWN = 40


class JsonTable(Columns):
    """The objects of a file; a key that is missing or null is an empty cell."""

    def __init__(self, label: str, rows: Sequence[dict[str, Any]], lines: Sequence[int], expected: str) -> None:
        super().__init__(label, lines, partial(guess_json, expected=expected))
        self._rows = rows

    @property
    def names(self) -> Collection[str]:
        """Keys of any of the objects, in order of appearance."""
        return dict.fromkeys(key for row in self._rows for key in row)

    def cells(self, name: str) -> list[Any]:
        """Return a column as parsed from JSON; None if a key is missing.

        Raises
        ------
        InputError
            If no object has the key.
        """
        values = [row.get(name) for row in self._rows]
        if all(value is None for value in values) and name not in self.names:
            raise self.missing(name, self.names)
        return values

    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as text; see `Columns.text`."""
        return tuple(_shown(value) for value in self.cells(name))

    def _cell_integers(self, name: str, empty: int | None) -> list[int]:
        return [self._number(row, name, value, int, empty) for row, value in enumerate(self.cells(name))]

    def _cell_floats(self, name: str, empty: float | None) -> list[float]:
        return [self._number(row, name, value, (int, float), empty) for row, value in enumerate(self.cells(name))]

    def _number(self, row: int, name: str, value: Any, kind: Any, empty: Any) -> Any:
        if value is None and empty is not None:
            return empty
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.wrong(row, name, _shown(value), "an integer" if kind is int else "a number")
        return value


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def read_json_tables(path: Path, label: str, expected: str, at_once: int | None = None) -> Iterator[JsonTable]:
    """Read a file of JSON objects, one per line; blank lines are skipped.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        The name of the file in messages.
    expected : str
        The trace format that the file should have, for messages.
    at_once : int or None
        Rows per table; None: all rows in one table.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or has a line that is not a JSON object.
    """
    objects = _objects(path, label, expected)
    found = False
    while chunk := list(islice(objects, at_once)):
        found = True
        yield JsonTable(label, [row for _, row in chunk], [line for line, _ in chunk], expected)
    if not found:
        raise InputError(f"{label}: the file is empty; JSON objects, one per line, are expected")


def _objects(path: Path, label: str, expected: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text_lines(path, label, MOST_TRACE_BYTES), start=1):
        if not line.strip():
            continue
        try:
            found = parse_json(line)
        except ValueError as error:
            guess = guess_format([cell.strip() for cell in line.split(",")], expected)
            hint = f": this looks like {guess}" if guess else f" ({error})"
            raise InputError(f"{label}:{number}: not a JSON object{hint}") from None
        if not isinstance(found, dict):
            raise InputError(f"{label}:{number}: a JSON object is expected, this is {_shown(found)}")
        yield number, found
