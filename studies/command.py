"""What the commands of the studies share: they print the files they wrote, and an error is one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from simqueue.errors import InputError, RunError, SimqueueError, exit_code


def run(command: Callable[[], Iterable[Path]]) -> int:
    """Parse, run, print the files written, and return the exit code: 0 done, 1 the run failed, 2 bad input.

    `command` parses its arguments itself, so that a closed pipe is no traceback for ``--help`` either.
    """
    return exit_code(lambda: _outcome(command))


def require(path: Path, option: str) -> None:
    """Check that a file or folder of the repository exists.

    Raises
    ------
    InputError
        If it does not; the error names the option that sets the path.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist: run this from the repository's folder, or give {option}")


def _outcome(command: Callable[[], Iterable[Path]]) -> int:
    try:
        for path in command():
            print(f"written: {path}")
    except SystemExit as parsed:  # argparse has printed its help or an error
        return int(parsed.code or 0)
    except BrokenPipeError:
        raise
    except (SimqueueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunError) else 2
    return 0
