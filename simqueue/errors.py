"""What can go wrong, told apart by whose turn it is: the user's (bad input) or the run's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit code of a command that was interrupted, as shells have it."""


class SimqueueError(Exception):
    """Base of every error this package raises on purpose; its text is one line for people."""


class InputError(SimqueueError):
    """Something the user wrote is wrong: a scenario, a trace, a flag. The command line exits with 2.

    Parameters
    ----------
    text : str
        What is wrong; a line for each mistake.
    key : str
        Dotted path of the key of a scenario that it is about, as far as the place that raises knows it; those above
        add what they know by `inside`. Empty where it is about none.
    value : str
        What was written there.
    """

    def __init__(self, text: str, key: str = "", value: str = "") -> None:
        subject = f"{key} = {value}" if value else key
        super().__init__(f"{subject}: {text}" if key else text)
        self.text, self.key, self.value = text, key, value


class FileError(InputError):
    """A file as a whole cannot be read. The text names it; the key is that of whoever named the file (`naming`)."""


class RunError(SimqueueError):
    """The run itself failed (livelock, a broken invariant). The command line exits with 1."""


@contextmanager
def inside(outer: str) -> Iterator[None]:
    """Put `outer` before the keys that errors raised inside are about; errors about no key pass as they are."""
    try:
        yield
    except InputError as error:
        if not error.key:
            raise
        raise InputError(error.text, f"{outer}.{error.key}", error.value) from None


@contextmanager
def naming(key: str) -> Iterator[None]:
    """Let errors about a whole file, raised inside, be about the key that names the file."""
    try:
        yield
    except FileError as error:
        raise InputError(error.text, key) from None


@contextmanager
def about(key: str) -> Iterator[None]:
    """Let errors raised inside be about this key unless they know better."""
    try:
        yield
    except InputError as error:
        if error.key:
            raise
        raise InputError(error.text.removeprefix(f"{key}: "), key) from None


def exit_code(command: Callable[[], int]) -> int:
    """Return the exit code of a command that prints: a reader that went away and Ctrl-C end it without a traceback."""
    try:
        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head` for example, wants no more
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # or the interpreter would try to write the rest at its end
        os.close(nowhere)
        return 0
    return code
