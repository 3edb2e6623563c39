"""CSV files with a header line, by column or by row, with errors that name file and line.

Line ends may be LF or CRLF. A byte order mark, blanks around cells, blank lines and a missing last newline are allowed.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from math import inf, isfinite
from pathlib import Path

from simqueue.datafiles.columns import Columns, Guess, allowed_number, cell_error, float_number
from simqueue.datafiles.limits import MOST_COLUMNS, MOST_TABLE_BYTES, MOST_TRACE_BYTES
from simqueue.datafiles.text import text_lines
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.printable import shortened


class Table(Columns):
    """Rows of a CSV file; cells are text without surrounding blanks."""

    def __init__(
        self,
        label: str,
        columns: Mapping[str, tuple[str, ...]],
        lines: Sequence[int],
        guess: Guess | None = None,
        counted: str = "line",
    ) -> None:
        super().__init__(label, lines, guess, counted)
        self._columns = columns

    @property
    def names(self) -> Collection[str]:
        """Names of the columns, as in the header."""
        return self._columns.keys()

    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as text; see `Columns.text`."""
        if name not in self._columns:
            raise self.missing(name, self._columns)
        return self._columns[name]

    def rows(self) -> Iterator[Row]:
        """Yield the rows one by one."""
        for line, cells in zip(self.lines, zip(*self._columns.values(), strict=True), strict=True):
            yield Row(f"{self.label}:{line}", dict(zip(self._columns, cells, strict=True)))

    def check_columns(self, needed: Sequence[str], known: Sequence[str] | None = None) -> None:
        """Check that all `needed` columns are there, and only `known` ones; None: all are known.

        Raises
        ------
        InputError
            At the first unknown column, with the nearest known name; else at the first missing one.
        """
        for name in self._columns:
            if known is not None and name not in known:
                raise InputError(f"{self.label}: {unknown('column', name, known)}")
        for name in needed:
            self.text(name)


class Row:
    """One row of a table.

    Attributes
    ----------
    where : str
        File and line, for messages.
    """

    __slots__ = ("_cells", "where")

    def __init__(self, where: str, cells: Mapping[str, str]) -> None:
        self.where = where
        self._cells = cells

    def __getitem__(self, name: str) -> str:
        if name not in self._cells:
            raise self.error(f"column '{name}' is missing")
        return self._cells[name]

    def number(self, name: str, *, least: float = -inf, above: float = -inf, empty: float | None = None) -> float:
        """Return a cell as a finite number.

        Parameters
        ----------
        name : str
            The column.
        least, above : float
            The number must be at least `least` and greater than `above`.
        empty : float or None
            Value of an empty cell and of a missing column; None: both are errors.

        Raises
        ------
        InputError
            If the cell is not such a number.
        """
        text = self._cells.get(name, "")
        if not text and empty is not None:
            return empty
        try:
            value = float_number(text)
        except ValueError:
            raise self.wrong(name, "a number") from None
        if not isfinite(value) or value < least or value <= above:
            raise self.wrong(name, f"a finite number above {above:g}" if above > least else allowed_number(least))
        return value

    def integer(self, name: str, *, least: int = 0, empty: int | None = None) -> int:
        """Return a cell as an integer of at least `least`; ``8.0`` is one. See `number` for `empty` and errors."""
        value = self.number(name, empty=empty)
        if value != int(value) or value < least:
            raise self.wrong(name, f"an integer of at least {least}")
        return int(value)

    def error(self, text: str) -> InputError:
        """Return an error about this row."""
        return InputError(f"{self.where}: {text}")

    def wrong(self, name: str, allowed: str) -> InputError:
        """Return the error for one cell."""
        return InputError(cell_error(self.where, name, self._cells.get(name, ""), allowed))


def read_table(path: Path, label: str, guess: Guess | None = None, *, pad: bool = False) -> Table:
    """Read a whole CSV file; see `read_tables`."""
    return next(read_tables(path, label, guess, pad=pad, most_bytes=MOST_TABLE_BYTES))


def read_tables(
    path: Path,
    label: str,
    guess: Guess | None = None,
    *,
    at_once: int | None = None,
    pad: bool = False,
    most_bytes: int = MOST_TRACE_BYTES,
) -> Iterator[Table]:
    """Read a CSV file in tables of `at_once` rows.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        The name of the file in messages.
    guess : callable or None
        Returns what a file with a foreign header looks like, for messages.
    at_once : int or None
        Rows per table; None: all rows in one table.
    pad : bool
        Whether rows shorter than the header are filled with empty cells; otherwise they are errors.
    most_bytes : int
        The largest size of the file.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, has no rows, or has a row that does not fit its header.
    """
    rows = _numbered(path, label, most_bytes)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{label}: the file is empty; a header line and rows are expected")
    header = [cell.strip() for cell in first[1]]
    _check_header(header, f"{label}:{first[0]}", guess)
    found = False
    while chunk := list(islice(rows, at_once)):
        found = True
        yield _table(chunk, header, label, guess, pad=pad)
    if not found:
        raise InputError(f"{label}: the file has a header and no rows")


def _table(
    chunk: Sequence[tuple[int, list[str]]], header: Sequence[str], label: str, guess: Guess | None, *, pad: bool
) -> Table:
    for line, row in chunk:
        if pad:
            row.extend([""] * (len(header) - len(row)))
        if len(row) != len(header):
            cells = "cell" if len(row) == 1 else "cells"
            raise InputError(f"{label}:{line}: {len(row)} {cells}, the header has {len(header)}")
    columns = zip(*(row for _, row in chunk), strict=True)
    stripped = (tuple(map(str.strip, column)) for column in columns)
    return Table(label, dict(zip(header, stripped, strict=True)), [line for line, _ in chunk], guess)


def _numbered(path: Path, label: str, most_bytes: int) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not blank, with their line numbers."""
    reader = csv.reader(text_lines(path, label, most_bytes))
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{label}:{reader.line_num}: not CSV ({error})") from None


def _check_header(header: Sequence[str], where: str, guess: Guess | None) -> None:
    if header[0].startswith(("{", "[")):
        found = (guess(header) if guess else None) or "JSON"
        raise InputError(f"{where}: this looks like {found}, not like CSV with a header line")
    if len(header) > MOST_COLUMNS:
        raise InputError(f"{where}: {len(header):,} columns; a table can have up to {MOST_COLUMNS:,}")
    repeated = next((name for name, times in Counter(header).items() if times > 1), None)
    if repeated is not None:
        raise InputError(f"{where}: column '{shortened(repeated)}' appears twice in the header")
