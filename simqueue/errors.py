"""What can go wrong: bad input, which the user can correct, or a run that failed."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Self

from simqueue.printable import LONGEST_LINE, printable, shortened

INTERRUPTED = 130
"""The exit code of a command that was interrupted, as shells have it."""


_LONGEST_PLACE = 300
"""Characters of a file name, or of what was given with a flag, in a message."""

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of a scenario down to one value."""

MOST_SHOWN: Final = 20
"""Problems of one error that are printed; a reader corrects the first ones and looks again."""

_MOST_DIGITS: Final = 400
"""Digits of a whole number up to which it is written out; a longer one is told by its length."""


class SimqueueError(Exception):
    """Base of the errors that this package raises on purpose; `str` gives lines for users."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with what the user wrote.

    Attributes
    ----------
    path : tuple of str or int
        Keys and list indices down to the value; empty if the problem is about no key.
    text : str
        What is wrong and what is allowed.
    value : str or None
        The value as YAML writes it, empty if it is not worth showing; None if only what was written can tell.
    place : str
        ``file:line``, or the flag, where the value was written. Added once, where the file is known.
    """

    path: KeyPath
    text: str
    value: str | None = None
    place: str = ""

    def __str__(self) -> str:
        """Return the problem in one line: place, path, value, text."""
        name = ".".join(shortened(str(step)) for step in self.path)
        subject = f"{name} = {self.value}" if name and self.value else name
        line = ": ".join(part for part in (shortened(self.place, _LONGEST_PLACE), subject, self.text) if part)
        return shortened(printable(line), LONGEST_LINE)


class InputError(SimqueueError):
    """Something the user wrote is wrong: a scenario, a trace, a flag. The command line exits with 2.

    Parameters
    ----------
    text : str
        What is wrong.
    *path : str or int
        The keys of a scenario down to the one that the error is about, as far as they are known here; callers add
        the outer ones with `inside`. Empty if the error is about no key.
    value : object
        What was written there; left out if it is not known here.

    Attributes
    ----------
    problems : tuple of Problem
        `str` gives one line for each.
    """

    def __init__(self, text: str, *path: str | int, value: object = ...) -> None:
        super().__init__(text)
        self.problems: tuple[Problem, ...] = (Problem(path, text, None if value is ... else show(value) or ""),)

    @classmethod
    def at(cls, place: str, text: str) -> Self:
        """Return the error about a place, such as ``file:line`` or a flag."""
        return cls.of([Problem((), text, place=place)])

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """Return the error that reports several problems."""
        error = cls("")
        error.problems = tuple(problems)
        return error

    def __str__(self) -> str:
        """Return one line per problem; of many, the first ones and how many there are."""
        lines = [str(problem) for problem in self.problems[:MOST_SHOWN]]
        rest = len(self.problems) - len(lines)
        return "\n".join([*lines, f"and {rest:,} more problems"] if rest else lines)


class FileError(InputError):
    """A file as a whole cannot be read. The text names the file; `naming` adds the key that names it."""


class RunError(SimqueueError):
    """The run itself failed (livelock, a broken invariant). The command line exits with 1."""


@contextmanager
def inside(*outer: str | int) -> Iterator[None]:
    """Put the keys `outer` before the paths of errors raised inside; errors about no key pass unchanged."""
    try:
        yield
    except InputError as error:
        if not any(map(_has_open_path, error.problems)):
            raise
        raise InputError.of(
            replace(problem, path=(*outer, *problem.path)) if _has_open_path(problem) else problem
            for problem in error.problems
        ) from None


@contextmanager
def about(*path: str | int) -> Iterator[None]:
    """Give errors raised inside this path if they are about no key."""
    try:
        yield
    except InputError as error:
        raise _given_path(error, path) from None


@contextmanager
def naming(*path: str | int) -> Iterator[None]:
    """Give errors about a whole file, raised inside, the path of the key that names the file."""
    try:
        yield
    except FileError as error:
        raise _given_path(error, path) from None


def _has_open_path(problem: Problem) -> bool:
    """Whether the path of a problem may still be extended: it has one, and it is not yet looked up in a file."""
    return bool(problem.path) and not problem.place


def _given_path(error: InputError, path: KeyPath) -> InputError:
    return InputError.of(
        problem if problem.path or problem.place else replace(problem, path=path) for problem in error.problems
    )


def show(value: object) -> str | None:
    """Return a scalar as YAML writes it, shortened to one line, or None for a list or a mapping."""
    if isinstance(value, dict | list | tuple):
        return None
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    if isinstance(value, int) and value.bit_length() > 3 * _MOST_DIGITS:
        return f"a whole number of some {int(value.bit_length() * math.log10(2)):,} digits"
    return shortened(repr(value))


def exit_code(command: Callable[[], int]) -> int:
    """Return the exit code of a command that prints.

    A closed pipe, a full disk behind stdout, and Ctrl-C end it without a traceback.
    """
    try:
        code = command()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _drop_stdout()
        return 0
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_stdout()
        if isinstance(error, BrokenPipeError):
            return 0
        if code == 0:
            sys.stderr.write(f"error: stdout cannot be written: {error.strerror}\n")
        return code or 1
    return code


def _drop_stdout() -> None:
    """Send what is not yet written to stdout nowhere; else the interpreter tries to write it when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
