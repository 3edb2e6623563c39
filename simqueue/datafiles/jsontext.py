"""JSON with decimals as they are written: ``0.1`` is a `Decimal`, so a time can be shifted before it is rounded."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from simqueue.datafiles.text import parse_json


def exact_json(text: str) -> Any:
    """Return a JSON value; numbers with a point or an exponent are `Decimal`.

    Raises
    ------
    ValueError
        If the text is not JSON or beyond the limits of `parse_json`; its text says what is wrong in a few words.
    """
    try:
        return parse_json(text, Decimal)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ValueError(f"{error.msg}, {line}column {error.colno}") from None
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
