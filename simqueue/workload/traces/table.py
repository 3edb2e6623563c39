"""A file as columns, with numbers read from it and errors that name the line: CSV, and what all files share.

`JsonTable` in `jsonlines` is the same for files of JSON objects.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import FileError, InputError
from simqueue.workload.limits import MOST_TOKENS
from simqueue.workload.traces.formats import guess_format

Number = TypeVar("Number", int, float)


class Cells(ABC):
    """Columns of cells by name.

    Attributes
    ----------
    label : str
        How the file is called in messages.
    lines : sequence of int, one per row
        Line number in the file, counted from 1.
    asked : str or None
        The format as which the file is read, for messages.
    """

    def __init__(self, label: str, lines: Sequence[int], asked: str | None) -> None:
        self.label = label
        self.lines = lines
        self.asked = asked

    @property
    @abstractmethod
    def columns(self) -> Collection[str]:
        """Names of the columns that there are."""

    @abstractmethod
    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as text, empty where a cell is.

        Raises
        ------
        InputError
            If there is none: names the columns found, and the format that the file looks like.
        """

    @abstractmethod
    def _cell_integers(self, name: str, empty: int | None) -> list[int]:
        """Return a column of whole numbers, `empty` for empty cells unless it is None."""

    @abstractmethod
    def _cell_floats(self, name: str, empty: float | None) -> list[float]:
        """Return a column of numbers, `empty` for empty cells unless it is None."""

    def _looks_like(self, found: Sequence[str]) -> str | None:
        """Return the format that a file with these columns seems to have."""
        return guess_format(found, self.asked)

    def missing(self, name: str, found: Iterable[str]) -> InputError:
        """Return the error about a column that is not there."""
        names = ", ".join(f"'{column}'" for column in found)
        guess = self._looks_like(list(found))
        hint = f"; this looks like {guess}" if guess else ""
        return InputError(f"{self.label}: column '{name}' is missing, columns found: {names}{hint}")

    def wrong(self, row: int, name: str, value: str, allowed: str) -> InputError:
        """Return the error for one cell: file, line, column, value and what is allowed."""
        return InputError(f"{self.label}:{self.lines[row]}: {name} '{value}' is not {allowed}")

    def integers(
        self, name: str, *, least: int = 0, most: int = MOST_TOKENS, empty: int | None = None
    ) -> NDArray[np.int64]:
        """Return a column of whole numbers within [least, most].

        Parameters
        ----------
        name : str
            The column.
        least, most : int
            What is allowed, both included.
        empty : int or None
            What an empty cell stands for; None: an empty cell is an error.

        Raises
        ------
        InputError
            If the column is missing or a cell is anything else.
        """
        numbers = self._cell_integers(name, empty)
        if numbers and not (least <= min(numbers) and max(numbers) <= most):
            for row, number in enumerate(numbers):
                if not least <= number <= most and number != empty:
                    raise self.wrong(row, name, self.text(name)[row], f"between {least} and {most}")
        return np.array(numbers, dtype=np.int64)

    def floats(self, name: str, *, least: float = -np.inf, empty: float | None = None) -> NDArray[np.float64]:
        """Return a column of finite numbers, each at least `least`; for `empty` and errors see `integers`."""
        numbers = np.array(self._cell_floats(name, empty), dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers) | (numbers < least)).tolist()
        texts = self.text(name) if bad else ()
        for row in bad:
            if texts[row] or empty is None:
                allowed = "a finite number" + ("" if least == -np.inf else f" of at least {least:g}")
                raise self.wrong(row, name, texts[row], allowed)
        return numbers


class Table(Cells):
    """The rows of a CSV file; cells are texts, stripped of blanks."""

    def __init__(
        self, label: str, columns: dict[str, tuple[str, ...]], lines: Sequence[int], asked: str | None = None
    ) -> None:
        super().__init__(label, lines, asked)
        self._columns = columns

    @property
    def columns(self) -> Collection[str]:
        """Names of the columns, as in the header."""
        return self._columns

    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as text; see `Cells.text`."""
        if name not in self._columns:
            raise self.missing(name, self._columns)
        return self._columns[name]

    def _cell_integers(self, name: str, empty: int | None) -> list[int]:
        return self._parsed(name, int, empty, "a whole number")

    def _cell_floats(self, name: str, empty: float | None) -> list[float]:
        return self._parsed(name, float, empty, "a number")

    def _parsed(self, name: str, parse: Callable[[str], Number], empty: Number | None, allowed: str) -> list[Number]:
        """Parse all cells; on failure name the first one that cannot be."""
        texts = self.text(name)
        numbers: list[Number] = []
        try:
            # Underscores are Python's own notation and no part of a number in a file.
            if empty is None and "_" not in "".join(texts):
                return list(map(parse, texts))
        except ValueError:
            pass  # the loop below finds out which one it was
        try:
            for text in texts:
                numbers.append(empty if empty is not None and not text else parse(_plain(text)))  # noqa: PERF401  (how many got through says which failed)
        except ValueError:
            row = len(numbers)
            raise self.wrong(row, name, texts[row], allowed) from None
        return numbers


def read_table(path: Path, label: str, asked: str | None = None) -> Table:
    """Read a whole CSV file; see `read_tables`."""
    return next(read_tables(path, label, asked))


def read_tables(path: Path, label: str, asked: str | None = None, at_once: int | None = None) -> Iterator[Table]:
    """Read a CSV file with a header line.

    A byte order mark, CRLF line ends, blanks around cells, blank lines and a missing last newline are all fine.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        How to call it in messages.
    asked : str or None
        The trace format that the caller expects, for messages.
    at_once : int or None
        How many rows a table has; None: one table of all.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, has no rows, or has a row that does not fit its header.
    """
    reader = csv.reader(text_lines(path, label))
    rows = _numbered(reader, label)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{label}: the file is empty; a header line and rows are expected")
    header = [cell.strip() for cell in first[1]]
    _check_header(header, label, first[0], asked)
    some = False
    while chunk := list(islice(rows, at_once)):
        some = True
        for line, row in chunk:
            if len(row) != len(header):
                raise InputError(f"{label}:{line}: {len(row)} cells, the header has {len(header)}")
        columns = zip(*(row for _, row in chunk), strict=True)
        stripped = (tuple(map(str.strip, column)) for column in columns)
        yield Table(label, dict(zip(header, stripped, strict=True)), [line for line, _ in chunk], asked)
    if not some:
        raise InputError(f"{label}: the file has a header and no rows")


def text_lines(path: Path, label: str) -> Iterator[str]:
    """Yield the lines of a text file with their ends, without a byte order mark.

    Raises
    ------
    FileError
        If there is no such file, or it is no text.
    """
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in file:
                number += 1
                yield line
    except FileNotFoundError:
        raise FileError(f"there is no file {path} (relative paths start at the scenario's folder)") from None
    except OSError as error:
        raise FileError(f"{label} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        where = f" (after line {number})" if number else ""
        raise FileError(f"{label} is no text file in UTF-8{where}") from None


def _numbered(reader: Iterator[list[str]], label: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not blank, with their line numbers."""
    try:
        for row in reader:
            if row:
                yield reader.line_num, row  # type: ignore[attr-defined] # csv readers count lines
    except csv.Error as error:
        raise InputError(f"{label}:{reader.line_num}: not CSV ({error})") from None  # type: ignore[attr-defined] # same


def _check_header(header: Sequence[str], label: str, line: int, asked: str | None) -> None:
    if header[0].startswith(("{", "[")):
        guess = guess_format(header, asked)
        raise InputError(f"{label}:{line}: this looks like {guess}, not like CSV with a header line")
    repeated = [name for i, name in enumerate(header) if name in header[:i]]
    if repeated:
        raise InputError(f"{label}:{line}: column '{repeated[0]}' appears twice in the header")


def _plain(text: str) -> str:
    if "_" in text:
        raise ValueError(text)
    return text
