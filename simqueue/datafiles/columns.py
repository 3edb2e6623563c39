"""The contract of tables that are read column by column: numbers with limits, errors with file and line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf, isfinite
from typing import TypeVar

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
        Line number in the file, counted from 1.
    """

    def __init__(self, label: str, lines: Sequence[int], guess: Guess | None = None) -> None:
        self.label = label
        self.lines = lines
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

    @abstractmethod
    def _cell_integers(self, name: str, empty: int | None) -> Sequence[int]:
        """Return a column of integers; empty cells become `empty`, or are errors if that is None."""

    @abstractmethod
    def _cell_floats(self, name: str, empty: float | None) -> Sequence[float]:
        """Return a column of numbers; empty cells become `empty`, or are errors if that is None."""

    def missing(self, name: str, found: Iterable[str]) -> InputError:
        """Return the error for a missing column."""
        columns = list(found)
        names = listed([f"'{shortened(column)}'" for column in columns])
        guess = self._guess(columns) if self._guess else None
        hint = f"; this looks like {guess}" if guess else ""
        return InputError(f"{self.label}: column '{name}' is missing, columns found: {names}{hint}")

    def wrong(self, row: int, name: str, value: str, allowed: str) -> InputError:
        """Return the error for one cell: file, line, column, value and what is allowed."""
        return InputError(cell_error(f"{self.label}:{self.lines[row]}", name, value, allowed))

    def integers(self, name: str, *, most: int, least: int = 0, empty: int | None = None) -> Sequence[int]:
        """Return a column of integers within [least, most].

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
        numbers = self._cell_integers(name, empty)
        if numbers and not (least <= min(numbers) and max(numbers) <= most):
            for row, number in enumerate(numbers):
                if not least <= number <= most and number != empty:
                    raise self.wrong(row, name, self.text(name)[row], f"between {least} and {most}")
        return numbers

    def floats(self, name: str, *, least: float = -inf, empty: float | None = None) -> Sequence[float]:
        """Return a column of finite numbers, each at least `least`; see `integers` for `empty` and errors."""
        numbers = self._cell_floats(name, empty)
        if numbers and not (all(map(isfinite, numbers)) and min(numbers) >= least):
            texts = self.text(name)
            for row, number in enumerate(numbers):
                if not (isfinite(number) and number >= least) and (texts[row] or empty is None):
                    raise self.wrong(row, name, texts[row], allowed_number(least))
        return numbers


def cell_error(where: str, name: str, value: str, allowed: str) -> str:
    """Return the message for one cell."""
    return f"{where}: {shortened(name)} '{shortened(value)}' is not {allowed}"


def allowed_number(least: float) -> str:
    """Return the words for a finite number with this lower limit."""
    return "a finite number" + ("" if least == -inf else f" of at least {least:g}")


def parse(text: str, kind: Callable[[str], Number]) -> Number:
    """Return `text` as a number of this kind; underscores are Python's notation and not allowed in files.

    Raises
    ------
    ValueError
        If the text is not such a number.
    """
    if "_" in text:
        raise ValueError(text)
    return kind(text)
