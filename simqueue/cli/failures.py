"""Errors as lines on stderr, and the exit codes that they give."""

from __future__ import annotations

import errno
import traceback
from contextvars import ContextVar
from typing import Final

import typer

from simqueue.errors import InputError, SimqueueError
from simqueue.printable import LONGEST_LINE, printable, shortened

DONE, FAILED, BAD_INPUT = 0, 1, 2

_CANNOT_WRITE: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF)

with_traceback: Final = ContextVar("with_traceback", default=False)
"""Whether `report` prints the traceback too (``--debug``)."""


def report(error: Exception, subject: str = "") -> int:
    """Print an error and return the exit code that it gives.

    Parameters
    ----------
    error : Exception
    subject : str
        What the error is about, put before each line; for commands that go on after it.
    """
    if with_traceback.get():
        traceback.print_exception(error)
    if isinstance(error, SimqueueError):
        print_error(str(error), subject)
        return BAD_INPUT if isinstance(error, InputError) else FAILED
    if isinstance(error, OSError) and error.filename is None and error.errno in _CANNOT_WRITE:
        print_error(f"stdout cannot be written: {error.strerror}", subject)  # other files have errors of their own
        return FAILED
    if isinstance(error, MemoryError):
        print_error("out of memory: make the run shorter, or write its tables during the run with --stream", subject)
        return FAILED
    what = shortened(" ".join(str(error).split()), LONGEST_LINE) or "no message"
    print_error(f"unexpected {type(error).__name__}: {what} (for the traceback, run again with --debug)", subject)
    return FAILED


def print_error(message: str, subject: str = "") -> None:
    """Print an error, each of its lines as one on stderr."""
    for line in map(printable, message.splitlines()):
        typer.echo(f"error: {subject}: {line}" if subject else f"error: {line}", err=True)
