"""Text of a user made fit to be printed: on one line, without control characters, and not longer than a reader needs.

Names, keys and values can hold anything: escape codes that colour a terminal, line ends, signs that change the
direction of writing, halves of surrogate pairs. Everything that prints such text takes it through `printable`.
"""

from __future__ import annotations

from typing import Final

LONGEST_VALUE: Final = 60
"""Characters of a value or a name in a message; the rest is not needed to recognise it."""

LONGEST_LINE: Final = 2000
"""Characters of a whole message, which can list names."""

_ELLIPSIS: Final = "..."


def printable(text: str) -> str:
    r"""Return the text on one line: every character that is not to be seen becomes its escape, such as ``\n``."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def is_text(text: str) -> bool:
    """Return whether a text has no halves of surrogate pairs, which stand for bytes that are no UTF-8."""
    return text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines with each line as `printable` has it."""
    return "\n".join(map(printable, text.split("\n")))


def shortened(text: str, most: int = LONGEST_VALUE) -> str:
    """Return the text if it has at most `most` characters, else its beginning and an ellipsis."""
    return text if len(text) <= most else text[: most - len(_ELLIPSIS)] + _ELLIPSIS


def listed(names: list[str], most: int = 40) -> str:
    """Return the names in one line; of more than `most`, the first ones and how many follow."""
    shown = [shortened(name) for name in names[:most]]
    rest = len(names) - len(shown)
    return ", ".join([*shown, f"and {rest:,} more"] if rest else shown)
