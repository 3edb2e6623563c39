"""Numbers in files, as other programs write them: whole numbers such as ``512.0``, and decimals without rounding."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

MOST_DIGITS: Final = 24
"""Digits of a decimal before the point; nanoseconds since 1970 have 19."""

MOST_PLACES: Final = 400
"""Digits of a decimal after the point; the shortest text of any float needs at most 340."""


def whole_number(text: str) -> int:
    """Return a text as an integer; ``512``, ``512.0`` and ``5.12e2`` are the same one.

    Raises
    ------
    ValueError
        If it is no integer, or is beyond what any file needs.
    """
    if text.isascii() and text.isdigit():  # the common case, and fast
        return int(text)
    mantissa, places = decimal(text)
    if places:
        raise ValueError(f"not a whole number: {text!r}")
    return mantissa


def decimal(text: str) -> tuple[int, int]:
    """Return (mantissa, places) with the exact value mantissa / 10^places, and as few places as possible.

    Raises
    ------
    ValueError
        If the text is no finite number, or has too many digits (`MOST_DIGITS`, `MOST_PLACES`).
    """
    whole, _, fraction = text.partition(".")
    if not (text.isascii() and whole.isdigit() and (fraction.isdigit() or not fraction)):
        whole, fraction = _parts(text)
    fraction = fraction.rstrip("0")
    if len(whole) > MOST_DIGITS + 1 or len(fraction) > MOST_PLACES:
        raise ValueError(f"not a decimal: {text!r}")
    return int(whole + fraction), len(fraction)


def _parts(text: str) -> tuple[str, str]:
    """Return the digits before the point, with a minus sign if there is one, and those after it."""
    if "_" in text or not text.isascii():  # both are Python's notation, not that of files
        raise ValueError(f"not a decimal: {text!r}")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"not a decimal: {text!r}") from None
    if not value.is_finite() or not -MOST_PLACES <= value.adjusted() < MOST_DIGITS:
        raise ValueError(f"not a decimal: {text!r}")
    whole, _, fraction = f"{value:f}".partition(".")
    return whole, fraction
