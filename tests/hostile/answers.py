"""What an answer to bad input must be like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

BAD_INPUT = 2
MOST_LINES = 21
"""The first 20 errors, and the number of the others."""
LONGEST_LINE = 2100
MOST_SECONDS = 2.0
MOST_MIB = 500


def faults(said: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with an answer.

    Parameters
    ----------
    said : mapping
        Exit code, text on stderr, seconds of CPU and MiB of memory, as ``code``, ``err``, ``seconds``, ``mib``.
    """
    lines = said["err"].removesuffix("\n").split("\n")
    if said["code"] != BAD_INPUT:
        yield "exit code"
    if len(lines) > MOST_LINES or not all(map(_is_plain, lines)):
        yield "lines"
    if "unexpected" in said["err"]:
        yield "unexpected"
    if said["seconds"] > MOST_SECONDS:
        yield "time"
    if said["mib"] > MOST_MIB:
        yield "memory"


def _is_plain(line: str) -> bool:
    return line.startswith("error: ") and line.isprintable() and len(line) <= LONGEST_LINE
