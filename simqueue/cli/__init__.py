"""The command line: parse, call, print. Each module holds one command or one group of them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn, cast

from simqueue.errors import INTERRUPTED, InputError, SimqueueError, exit_code

__all__ = ["main"]

DONE, FAILED, BAD_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code: 0 done, 1 the run failed, 2 bad input, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run_command([*given, "--help"] if given in ([], ["list"]) else given))


def run_command(arguments: list[str]) -> int:
    """Run a command and return its exit code; whatever goes wrong becomes one line on stderr."""
    return exit_code(lambda: _outcome(arguments))


def _outcome(arguments: list[str]) -> int:
    try:
        return _invoke(arguments)
    except BrokenPipeError:
        raise
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exception(error)
        return _report(error)


def _report(error: Exception) -> int:
    """Print an error for people and return the exit code it stands for."""
    if isinstance(error, SimqueueError):
        _complain(str(error))
        return BAD_INPUT if isinstance(error, InputError) else FAILED
    what = " ".join(str(error).split()) or "no message"
    _complain(f"unexpected {type(error).__name__}: {what} (run again with --debug to see where)")
    return FAILED


def _invoke(arguments: list[str]) -> int:
    import typer

    from simqueue.cli.app import application

    # typer does not export the class of all usage errors, only this one of its children
    usage_error = cast("type[Exception]", typer.BadParameter.__mro__[1])
    try:
        app = application(arguments[0] if arguments else None)
        code = app(arguments, prog_name="simqueue", standalone_mode=False)
    except usage_error as error:
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
