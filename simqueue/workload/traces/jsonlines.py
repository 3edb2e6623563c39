"""A file of JSON objects, one per line, as columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from simqueue.datafiles.columns import Columns
from simqueue.datafiles.jsontext import cell_text, exact_json
from simqueue.datafiles.limits import MOST_TRACE_BYTES
from simqueue.datafiles.text import text_lines
from simqueue.errors import InputError
from simqueue.workload.traces.formats import guess_format, guess_json


class JsonTable(Columns):
    """The objects of a file. A key that is missing or null is an empty cell; a number in quotes is a number."""

    def __init__(self, label: str, rows: Sequence[dict[str, Any]], lines: Sequence[int], expected: str) -> None:
        super().__init__(label, lines, partial(guess_json, expected=expected))
        self._rows = rows

    @cached_property
    def names(self) -> Collection[str]:
        """Keys of any of the objects, in order of appearance."""
        return dict.fromkeys(chain.from_iterable(self._rows))

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
        return tuple(map(cell_text, self.cells(name)))

    def _plain_integers(self, name: str) -> list[int] | None:
        values = self.cells(name)
        return values if all(type(value) is int for value in values) else None


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
    text = text_lines(path, label, MOST_TRACE_BYTES)
    lines = ((number, line) for number, line in enumerate(text, start=1) if line.strip())
    for position, (number, line) in enumerate(lines):
        try:
            found = exact_json(line)
        except ValueError as error:
            raise InputError(f"{label}:{number}: {_not_json(line, expected, error, first=position == 0)}") from None
        if not isinstance(found, dict):
            raise InputError(f"{label}:{number}: a JSON object is expected, this is {_kind(found)}")
        yield number, found


def _not_json(line: str, expected: str, error: ValueError, *, first: bool) -> str:
    """Return what is wrong with a line that is not JSON. Only the first one tells what the whole file looks like."""
    guess = guess_format([cell.strip() for cell in line.split(",")], expected) if first else None
    if guess in (None, "JSON"):
        broken = f"not JSON ({error})"
        return f"{broken}; one JSON object per line is expected" if first else broken
    return f"not a JSON object: this looks like {guess}"


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list; write each of its objects on a line of its own (jq -c '.[]')"
    return f"'{cell_text(value)}'"
