"""Lists as aligned columns: one line per row in a pipe, as many columns as fit on a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from simqueue.printable import printable

Row = dict[str, Any]

_GAP = "  "
_TEXT_FROM = 30
"""Cells of this many characters or more are texts, which follow on lines of their own on a terminal."""
_INDENT = "    "


def terminal_width() -> int | None:
    """Return the width of the terminal on stdout in characters, or None if stdout is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def listed(rows: Sequence[Row], width: int | None, essential: Sequence[str] = ()) -> list[str]:
    """Return the lines of a table.

    Parameters
    ----------
    rows : sequence of dict
        All have the same keys. The first key is the name.
    width : int or None
        Width of the terminal. Texts follow below their row, and other columns are dropped if they do not fit. None:
        one line per row with all columns, texts last.
    essential : sequence of str
        Keys to keep if not all columns fit, the most important first.
    """
    short, texts = _columns(rows)
    if width is None:
        return _aligned(rows, [*short, *texts])
    head, *lines = _aligned(rows, _fitting(rows, short, essential, width))
    shown = [head]
    for row, line in zip(rows, lines, strict=True):
        below = (f"{_titled(key, texts)}{cell(row[key])}" for key in texts if row[key])
        shown += [line, *(part for text in below for part in _folded(text, width))]
    return shown


def _columns(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Return the keys of short columns, the name first, and the keys of texts."""
    first, *others = list(rows[0])
    texts = [key for key in others if any(len(cell(row[key])) >= _TEXT_FROM for row in rows)]
    return [first, *(key for key in others if key not in texts)], texts


def _fitting(rows: Sequence[Row], keys: Sequence[str], essential: Sequence[str], width: int) -> list[str]:
    """Return the keys of the columns that fit: all of them, or the name and the first essential ones."""
    first, *others = keys
    kept = [first, *others]
    if essential and _wide(rows, kept) > width:
        kept = [first, *(key for key in essential if key in others)]
    while len(kept) > 1 and _wide(rows, kept) > width:
        kept.pop()
    return kept


def cell(value: Any) -> str:
    """Return a value as text."""
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:,.4g}"
    return printable(str(value))


def _titled(key: str, texts: Sequence[str]) -> str:
    """Return the label of a text; it is empty if there is only one column of texts."""
    return f"{_title(key)}: " if len(texts) > 1 else ""


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 40), initial_indent=_INDENT, subsequent_indent=_INDENT)


def _title(key: str) -> str:
    return key.replace("_", " ")


def _widths(rows: Sequence[Row], keys: Sequence[str]) -> list[int]:
    return [max(len(_title(key)), *(len(cell(row[key])) for row in rows)) for key in keys]


def _wide(rows: Sequence[Row], keys: Sequence[str]) -> int:
    return sum(_widths(rows, keys)) + len(_GAP) * (len(keys) - 1)


def _aligned(rows: Sequence[Row], keys: Sequence[str]) -> list[str]:
    """Return a header and one line per row; columns of numbers are aligned to the right."""
    widths = _widths(rows, keys)
    right = [all(isinstance(row[key], int | float | None) for row in rows) for key in keys]
    lines = [[_title(key) for key in keys], *([cell(row[key]) for key in keys] for row in rows)]
    return [
        _GAP.join(
            text.rjust(width) if flush_right else text.ljust(width)
            for text, width, flush_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
