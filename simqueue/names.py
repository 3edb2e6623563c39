"""Names: which ones are valid, and how errors report an unknown one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from simqueue.printable import listed, shortened

LONGEST_NAME: Final = 200
"""Longest name of a scenario, a policy or a workload, in characters; folders and files are named after them."""
PLAIN_RULE: Final = (
    f"must be letters, digits, '_' and '-', starting with a letter or a digit, at most {LONGEST_NAME} characters"
)
"""What `is_plain` checks, for error messages."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

_ALIKE: Final = 0.5
"""Least similarity (`difflib`) of a name that is offered instead of another."""
_BEGINNING: Final = 0.5
"""Weight of a common beginning beside the similarity: people know how a name begins."""
_LONGEST_COMPARED: Final = 100
"""Characters of the longest name that is compared: none of the known ones is as long, and it takes the square."""
_MOST_OFFERED: Final = 5


def is_plain(name: str) -> bool:
    """Return whether a policy, a scheduler or a workload can have this name."""
    return len(name) <= LONGEST_NAME and _PLAIN.fullmatch(name) is not None


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that are closest to `name`: several if they are equally close, none if nothing is close.

    Case and everything but letters and digits do not count. Names that begin with `name` are closest of all.
    """
    wanted = _bare(name)
    if not wanted or len(name) > _LONGEST_COMPARED:
        return ()
    bare = {one: _bare(one) for one in known}
    for close in ([one for one, text in bare.items() if text == wanted], _beginning_with(wanted, bare)):
        if close:
            return tuple(close[:_MOST_OFFERED])
    scores = {one: _closeness(wanted, text) for one, text in bare.items()}
    best = max(scores.values(), default=0.0)
    return tuple(one for one, score in scores.items() if score == best and best > 0)[:_MOST_OFFERED]


def hint(name: str, known: Iterable[str]) -> str:
    """Return the question whether one of the closest known names is meant; empty if nothing is close."""
    close = [f"'{one}'" for one in nearest(name, known)]
    return f"did you mean {' or '.join(filter(None, [', '.join(close[:-1]), close[-1]]))}?" if close else ""


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the text of an error about an unknown name: the name, the nearest known ones, and all known ones.

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
    question = hint(str(name), names)
    return f"unknown {kind} '{shortened(str(name))}'; {question}{question and ' '}known: {listed(names) or 'none'}"


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _beginning_with(wanted: str, bare: dict[str, str]) -> list[str]:
    return [one for one, text in bare.items() if text.startswith(wanted)] if len(wanted) > 1 else []


def _closeness(wanted: str, text: str) -> float:
    """Return how close a name is: its similarity and its common beginning; 0 if it is not similar."""
    if abs(len(wanted) - len(text)) > _LONGEST_COMPARED:
        return 0.0
    alike = difflib.SequenceMatcher(None, text, wanted).ratio()
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(wanted, text, strict=False)))
    return alike + _BEGINNING * common / max(len(wanted), len(text)) if alike >= _ALIKE else 0.0
