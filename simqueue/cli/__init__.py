"""The command line: parse, call, print. Each module holds one command or one group of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from simqueue.cli.app import app
from simqueue.errors import InputError, RunError

__all__ = ["main"]

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code: 0 done, 1 the run failed, 2 bad input, 130 interrupted."""
    sys.exit(run_command(list(sys.argv[1:] if arguments is None else arguments)))


def run_command(arguments: list[str]) -> int:
    """Run a command and return its exit code; whatever goes wrong becomes one line on stderr."""
    if "--debug" in arguments:
        return _invoke(arguments)
    try:
        return _invoke(arguments)
    except InputError as error:
        _complain(str(error))
        return BAD_INPUT
    except RunError as error:
        _complain(str(error))
        return FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads: let the flush at exit go nowhere
        return FAILED
    except Exception as error:  # the last resort: people get one line, not a traceback
        what = " ".join(str(error).split()) or "no message"
        _complain(f"unexpected {type(error).__name__}: {what} (run again with --debug to see where)")
        return FAILED


def _invoke(arguments: list[str]) -> int:
    import typer

    try:
        code = app(arguments, prog_name="simqueue", standalone_mode=False)
    except typer.BadParameter.__mro__[1] as error:  # typer does not export the class of all usage errors
        _complain(_usage(error))
        return BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        _complain("interrupted")
    return code if isinstance(code, int) else DONE


def _usage(error: BaseException) -> str:
    """Return a usage error in one line, with the command that explains."""
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "simqueue"
    return f"{' '.join(message.split()).rstrip('.')} (see '{command} --help')"


def _complain(message: str) -> None:
    for line in message.splitlines():
        print(f"error: {line}", file=sys.stderr)  # noqa: T201 - printing is what a command line does
