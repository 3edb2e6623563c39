"""Names: which ones are valid, and how errors report an unknown one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

PLAIN_RULE: Final = "must be letters, digits, '_' and '-', starting with a letter or a digit"
"""What `is_plain` checks, for error messages."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def is_plain(name: str) -> bool:
    """Return whether a policy, a scheduler or a workload can have this name."""
    return _PLAIN.fullmatch(name) is not None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to `name`, or None if nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return close[0] if close else None


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the text of an error about an unknown name: the name, the nearest known one, and all known ones.

    Parameters
    ----------
    kind : str
        What the name should have named, such as ``policy`` or ``key``.
    name : object
        What was written.
    known : iterable of str
        The valid names, in the order in which they are shown.
    """
    names = [str(one) for one in known]
    guess = nearest(str(name), names)
    hint = f"did you mean '{guess}'? " if guess else ""
    return f"unknown {kind} '{name}'; {hint}known: {', '.join(names) or 'none'}"
