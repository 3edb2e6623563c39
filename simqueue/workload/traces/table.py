"""A CSV file as columns of text, with line numbers, and numbers read from it with errors that name the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.workload.limits import MOST_TOKENS
from simqueue.workload.traces.formats import guess_format

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Table:
    """The rows of a CSV file.

    Attributes
    ----------
    label : str
        How the file is called in messages.
    columns : dict of str to tuple of str
        Text of each column, stripped of blanks, by name as in the header.
    lines : tuple of int, one per row
        Line number in the file, the header being line 1 unless blank lines precede it.
    asked : str or None
        The format as which the file is read, for messages.
    """

    label: str
    columns: dict[str, tuple[str, ...]]
    lines: tuple[int, ...]
    asked: str | None = None

    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as text.

        Raises
        ------
        InputError
            If there is none: names the columns found, and the format that the file looks like.
        """
        if name in self.columns:
            return self.columns[name]
        found = ", ".join(f"'{column}'" for column in self.columns)
        guess = guess_format(list(self.columns), self.asked)
        hint = f"; this looks like {guess}" if guess else ""
        raise InputError(f"{self.label}: column '{name}' is missing, columns found: {found}{hint}")

    def wrong(self, row: int, name: str, value: str, allowed: str) -> InputError:
        """Return the error for one cell: file, line, column, value and what is allowed."""
        return InputError(f"{self.label}: line {self.lines[row]}: {name} '{value}' is not {allowed}")

    def integers(
        self, name: str, *, least: int = 0, most: int = MOST_TOKENS, empty: int | None = None
    ) -> NDArray[np.int64]:
        """Return a column of whole numbers within [least, most].

        Parameters
        ----------
        name : str
            The column, as in the header.
        least, most : int
            What is allowed, both included.
        empty : int or None
            What an empty cell stands for; None: an empty cell is an error.

        Raises
        ------
        InputError
            If the column is missing or a cell is anything else.
        """
        texts = self.text(name)
        numbers = self._parsed(name, _integer, empty, "a whole number")
        for row, number in enumerate(numbers):
            if not least <= number <= most and number != empty:
                raise self.wrong(row, name, texts[row], f"between {least} and {most}")
        return np.array(numbers, dtype=np.int64)

    def floats(self, name: str, *, least: float = -np.inf, empty: float | None = None) -> NDArray[np.float64]:
        """Return a column of finite numbers, each at least `least`; for `empty` and errors see `integers`."""
        texts = self.text(name)
        numbers = np.array(self._parsed(name, _float, empty, "a number"), dtype=np.float64)
        for row in np.flatnonzero(~np.isfinite(numbers) | (numbers < least)).tolist():
            if texts[row] or empty is None:
                allowed = "a finite number" + ("" if least == -np.inf else f" of at least {least:g}")
                raise self.wrong(row, name, texts[row], allowed)
        return numbers

    def _parsed(self, name: str, parse: Callable[[str], Number], empty: Number | None, allowed: str) -> list[Number]:
        """Parse all cells; on failure name the first one that cannot be."""
        texts = self.text(name)
        numbers: list[Number] = []
        try:
            for text in texts:
                numbers.append(empty if empty is not None and not text else parse(text))  # noqa: PERF401  (how many got through says which failed)
        except ValueError:
            row = len(numbers)
            raise self.wrong(row, name, texts[row], allowed) from None
        return numbers


def read_table(path: Path, label: str, asked: str | None = None) -> Table:
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

    Raises
    ------
    InputError
        If the file cannot be read, is empty, has no rows, or has a row that does not fit its header.
    """
    reader = csv.reader(io.StringIO(_text(path, label), newline=""))
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"{label}: line {reader.line_num}: not CSV ({error})") from None
    if not rows:
        raise InputError(f"{label}: the file is empty; a header line and rows are expected")
    header = [cell.strip() for cell in rows[0]]
    _check_header(header, label, lines[0], asked)
    _check_widths(rows, lines, label)
    if len(rows) == 1:
        raise InputError(f"{label}: the file has a header and no rows")
    columns = zip(*rows[1:], strict=True)
    stripped = (tuple(cell.strip() for cell in column) for column in columns)
    return Table(label, dict(zip(header, stripped, strict=True)), tuple(lines[1:]), asked)


def _text(path: Path, label: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{label}: there is no such file (paths are relative to the scenario file)") from None
    except OSError as error:
        raise InputError(f"{label}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{label}: is not UTF-8 text (byte {error.start})") from None


def _check_header(header: Sequence[str], label: str, line: int, asked: str | None) -> None:
    guess = guess_format(header, asked)
    if header[0].startswith("{"):
        raise InputError(f"{label}: line {line}: this looks like {guess}, not like CSV with a header line")
    repeated = [name for i, name in enumerate(header) if name in header[:i]]
    if repeated:
        raise InputError(f"{label}: line {line}: column '{repeated[0]}' appears twice in the header")


def _check_widths(rows: Sequence[Sequence[str]], lines: Sequence[int], label: str) -> None:
    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise InputError(f"{label}: line {line}: {len(row)} cells, the header has {width}")


def _integer(text: str) -> int:
    if "_" in text:  # Python's own notation, not a number in a file
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)
