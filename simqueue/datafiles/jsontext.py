"""JSON with decimals as they are written: ``0.1`` is a `Decimal`, so a time can be shifted before it is rounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from simqueue.datafiles.columns import Guess
from simqueue.datafiles.limits import MOST_BENCH_BYTES, MOST_TRACE_BYTES
from simqueue.datafiles.text import parse_json, text_lines
from simqueue.errors import InputError


def exact_json(text: str) -> Any:
    """Return a JSON value; numbers with a point or an exponent are `Decimal`.

    Raises
    ------
    ValueError
        If the text is not JSON or beyond the limits of `parse_json`; its text says what is wrong in a few words.
    """
    try:
        return parse_json(text.strip(), Decimal)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ValueError(f"{error.msg.removesuffix(' at')}, {line}column {error.colno}") from None
    except InvalidOperation:
        raise ValueError("a number is too large") from None


def cell_text(value: Any) -> str:
    """Return a JSON value as the text of a cell; null is an empty one."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)
    return json.dumps(value, default=str)


def json_documents(path: Path, label: str, expected: str, guess: Guess) -> Iterator[tuple[str, Any]]:
    """Yield (place, value) for each line of a file of JSON lines, or once for a file that is one JSON text.

    Parameters
    ----------
    path : Path
    label : str
        The name of the file in messages.
    expected : str
        What the file should hold, for messages.
    guess : callable
        Returns what a file with another first line looks like, for messages.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or is neither of the two.
    """
    numbered = enumerate(text_lines(path, label, MOST_TRACE_BYTES, MOST_BENCH_BYTES), start=1)
    lines = ((number, line) for number, line in numbered if line.strip())
    first = next(lines, None)
    if first is None:
        raise InputError(f"{label}: the file is empty; {expected} expected")
    try:
        value = exact_json(first[1])
    except ValueError:
        if not first[1].lstrip().startswith(("{", "[")):
            looks = guess([cell.strip() for cell in first[1].split(",")])
            hint = f"; this looks like {looks}" if looks else ""
            raise InputError(f"{label}: not JSON; {expected} expected{hint}") from None
        yield label, _whole(first[1], (line for _, line in lines), label, expected)
        return
    yield f"{label}:{first[0]}", value
    for number, line in lines:
        try:
            value = exact_json(line)
        except ValueError as error:
            raise InputError(f"{label}:{number}: not JSON ({error})") from None
        yield f"{label}:{number}", value


def _whole(first: str, rest: Iterator[str], label: str, expected: str) -> Any:
    """Return the value of a JSON text over several lines."""
    pieces, length = [first], len(first)
    for line in rest:
        pieces.append(line)
        length += len(line)
        if length > MOST_BENCH_BYTES:
            text = f"as one JSON text the file can have up to {MOST_BENCH_BYTES / 2**20:,.0f} MiB; write JSON lines"
            raise InputError(f"{label}: {text}")
    try:
        return exact_json("".join(pieces))
    except ValueError as error:
        raise InputError(f"{label}: not JSON ({error}); {expected} expected") from None
