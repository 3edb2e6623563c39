"""The contract of tables that are read column by column: numbers with limits, errors with file and line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf, isfinite
from typing import TypeVar

from simqueue.datafiles.numbers import whole_number
from simqueue.errors import InputError
from simqueue.printable import listed, shortened

Number = TypeVar("Number", int, float)

Guess = Callable[[Sequence[str]], str | None]
"""Returns what a file with these column names looks like, for messages; None: unknown."""


class Columns(ABC):
    """The rows of a file as named columns of equal length.

    Attributes
    ----------
    label : str
        The name of the file in messages.
    lines : sequence of int, one per row
        Number of the row in the file, counted from 1.
    counted : str
        What `lines` counts: lines of a text file, rows, ...
    """

    def __init__(self, label: str, lines: Sequence[int], guess: Guess | None = None, counted: str = "line") -> None:
        self.label = label
        self.lines = lines
        self.counted = counted
        self._guess = guess

    def __len__(self) -> int:
        return len(self.lines)

    @property
    @abstractmethod
    def names(self) -> Collection[str]:
        """Names of the columns, in the order of the file."""

    @abstractmethod
    def text(self, name: str) -> tuple[str, ...]:
        """Return a column as text; empty cells are empty strings.

        Raises
        ------
        InputError
            If the column is missing. The message lists the columns found.
        """

    def missing(self, name: str, found: Iterable[str], otherwise: str = "") -> InputError:
        """Return the error for a missing column; it ends with what the file looks like, or with `otherwise`."""
        columns = list(found)
        names = listed([f"'{shortened(column)}'" for column in columns])
        guess = self._guess(columns) if self._guess else None
        hint = f"; this looks like {guess}" if guess else otherwise
        return InputError(f"{self.label}: column '{name}' is missing, columns found: {names}{hint}")

    def wrong(self, row: int, name: str, value: str, allowed: str) -> InputError:
        """Return the error for one cell: file, line, column, value and what is allowed."""
        return InputError(cell_error(place(self.label, self.counted, self.lines[row]), name, value, allowed))

    def integers(self, name: str, *, most: int, least: int = 0, empty: int | None = None) -> Sequence[int]:
        """Return a column of integers within [least, most]; ``512.0`` is one.

        Parameters
        ----------
        name : str
            The column.
        least, most : int
            Smallest and largest allowed value.
        empty : int or None
            Value of an empty cell; None: an empty cell is an error.

        Raises
        ------
        InputError
            If the column is missing, or a cell is not such an integer.
        """
        numbers = self._plain_integers(name) or self._parsed(name, whole_number, empty, "an integer")
        if numbers and not (least <= min(numbers) and max(numbers) <= most):
            for row, number in enumerate(numbers):
                if not least <= number <= most and number != empty:
                    raise self.wrong(row, name, self.text(name)[row], f"between {least} and {most}")
        return numbers

    def floats(self, name: str, *, least: float = -inf, empty: float | None = None) -> Sequence[float]:
        """Return a column of finite numbers, each at least `least`; see `integers` for `empty` and errors."""
        numbers = self._parsed(name, float_number, empty, "a number")
        if numbers and not (all(map(isfinite, numbers)) and min(numbers) >= least):
            texts = self.text(name)
            for row, number in enumerate(numbers):
                if not (isfinite(number) and number >= least) and (texts[row] or empty is None):
                    raise self.wrong(row, name, texts[row], allowed_number(least))
        return numbers

    def _plain_integers(self, name: str) -> list[int] | None:
        """Return a column of which every cell is digits, or None: the common case, and fast."""
        texts = self.text(name)
        together = "".join(texts)
        return list(map(int, texts)) if together.isascii() and together.isdigit() and all(texts) else None

    def _parsed(self, name: str, parse: Callable[[str], Number], empty: Number | None, allowed: str) -> list[Number]:
        """Parse all cells; the error names the first one that cannot be."""
        numbers: list[Number] = []
        for row, text in enumerate(self.text(name)):
            try:
                numbers.append(empty if empty is not None and not text else parse(text))
            except ValueError:
                raise self.wrong(row, name, text, allowed) from None
        return numbers


def place(label: str, counted: str, number: int) -> str:
    """Return where a row is, for messages: ``file:12`` for a line, ``file: row 12`` for anything else."""
    return f"{label}:{number}" if counted == "line" else f"{label}: {counted} {number}"


def cell_error(where: str, name: str, value: str, allowed: str) -> str:
    """Return the message for one cell."""
    return f"{where}: {shortened(name)} '{shortened(value)}' is not {allowed}"


def allowed_number(least: float) -> str:
    """Return the words for a finite number with this lower limit."""
    return "a finite number" + ("" if least == -inf else f" of at least {least:g}")


def float_number(text: str) -> float:
    """Return a text as a float; underscores are Python's notation and not allowed in files.

    Raises
    ------
    ValueError
        If the text is not a number.
    """
    if "_" in text:
        raise ValueError(text)
    return float(text)
