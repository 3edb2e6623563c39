"""stdout and stderr as a command finds them: closed, or without all characters that commands print."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Final

_ERRORS: Final = "simqueue.plain"
_PLAIN: Final = {"±": "+-", "×": "x", "–": "-", "…": "..."}
"""How to write characters of our own tables where only ASCII can be printed."""


def prepare() -> None:
    """Make stdout and stderr usable: a closed one goes nowhere, and no character is an error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    codecs.register_error(_ERRORS, _replaced)
    make_lenient(sys.stdout)


def make_lenient(stream: object) -> None:
    """Let a text stream write what its encoding lacks in another way, if it would raise an error."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors=_ERRORS)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    plain = (_PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode("ascii") for letter in letters)
    return "".join(plain), error.end
