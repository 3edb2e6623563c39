"""The command: one line per file, and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simqueue.conformance import routing, schedules
from simqueue.datafiles.text import read_json, text_lines
from simqueue.errors import InputError, SimqueueError

USAGE = """usage: python -m simqueue.conformance FILE...

Each FILE is a recording: the decisions of an engine's scheduler, or of a router, as JSON. It is compared with what
this package decides, and one line is printed: ok, or the first difference. A FILE of JSON Lines (.jsonl) has several
recordings, one a line. Files can be compressed with gzip or Zstandard.
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
    """Compare one file, print a line for each recording, and return its exit code."""
    worst = 0
    try:
        for label, recorded in _recordings(file):
            difference = _difference(recorded, label)
            sys.stdout.write(f"{label}: {difference or 'ok'}\n")
            worst = max(worst, 1 if difference else 0)
    except SimqueueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return worst


def _recordings(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the recordings of a file, each with its name in messages."""
    if ".jsonl" not in file.suffixes:
        yield str(file), read_json(file)
        return
    for number, line in enumerate(text_lines(file, str(file)), 1):
        try:
            recorded = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{file}, line {number}: not JSON: {error}") from None
        if not isinstance(recorded, dict):
            raise InputError(f"{file}, line {number}: a recording must be a JSON object")
        yield f"{file}, {recorded.get('case', f'line {number}')}", recorded


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
