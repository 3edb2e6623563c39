"""The command line. `commands` declares every command and its options; `actions` holds what the commands do."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from simqueue.cli.streams import prepare
from simqueue.errors import exit_code

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code: 0 done, 1 the run failed, 2 bad input, 130 interrupted."""
    prepare()
    signal.signal(signal.SIGTERM, _terminate)
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run_command([*given, "--help"] if given in ([], ["list"]) else given))


def _terminate(number: int, _: object) -> NoReturn:
    """End as a signal asks, but remove what is not complete first."""
    sys.exit(128 + number)


def run_command(arguments: list[str]) -> int:
    """Run a command and return its exit code; every error becomes one line on stderr."""
    return exit_code(lambda: _outcome(arguments))


def _outcome(arguments: list[str]) -> int:
    # Ctrl-C while typer is being imported must be caught too, so the import happens inside `exit_code`.
    code: int = import_module("simqueue.cli.app").outcome(arguments)
    return code
