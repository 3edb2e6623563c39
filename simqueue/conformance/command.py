"""The command: one line per file, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simqueue.conformance import routing, schedules
from simqueue.datafiles.text import read_json
from simqueue.errors import InputError, SimqueueError

USAGE = """usage: python -m simqueue.conformance FILE...

Each FILE is a recording: the decisions of an engine's scheduler, or of a router, as JSON. It is compared with what
this package decides, and one line is printed: ok, or the first difference.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare files and print one line per file.

    Returns
    -------
    int
        0 if all files agree, 1 if a file differs, 2 if a file cannot be read as a recording.
    """
    names = sys.argv[1:] if arguments is None else list(arguments)
    if not names or names[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0 if names else 2
    return max(_compare(Path(name)) for name in names)


def _compare(file: Path) -> int:
    """Compare one file, print its line, and return its exit code."""
    try:
        difference = _difference(read_json(file), str(file))
    except SimqueueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{file}: {difference or 'ok'}\n")
    return 1 if difference else 0


def _difference(recorded: Mapping[str, Any], label: str) -> str | None:
    routed = "router" in recorded
    _check_keys(recorded, routing.NEEDED if routed else schedules.NEEDED, label, "routing" if routed else "schedule")
    if not routed:
        return schedules.first_difference(recorded) or schedules.first_difference(recorded, fast=True)
    try:
        return routing.first_difference(recorded)
    except InputError as error:
        raise InputError(f"{label}: {error}") from None


def _check_keys(recorded: Mapping[str, Any], needed: Sequence[str], label: str, what: str) -> None:
    missing = [key for key in needed if key not in recorded]
    if missing:
        raise InputError(f"{label}: not a recorded {what}: missing {', '.join(missing)}")
