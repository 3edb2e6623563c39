"""Absolute timestamps as whole numbers of 100 ns, for many rows at once. `timecells` reads the less common forms.

Accepted, also mixed in one file: ``2023-11-16 18:15:46.6805900``, with ``T`` instead of the blank, with no fraction or
one to seven digits of it, and with ``Z``, ``+00:00`` or nothing at the end (all are UTC).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TICKS_PER_S = 10_000_000

_SECONDS_END = 19  # "2023-11-16 18:15:46"
_FRACTION_DIGITS = 7
_ZONES = ("", "Z", "+00:00")
_WIDTH = _SECONDS_END + 1 + _FRACTION_DIGITS + max(map(len, _ZONES))

_Codes = NDArray[np.uint8]
_Flags = NDArray[np.bool_]
_Whole = NDArray[np.int64]


class BadTimestampError(ValueError):
    """One of the texts is not a timestamp.

    Attributes
    ----------
    row : int
        Its position, counted from 0.
    allowed : str
        What is allowed there, for messages.
    """

    def __init__(self, row: int, allowed: str = "a time") -> None:
        super().__init__(f"row {row} is not {allowed}")
        self.row = row
        self.allowed = allowed


def parse_timestamps(texts: Sequence[str]) -> _Whole:
    """Return each timestamp as 100-ns ticks since 1970-01-01, exactly.

    Parameters
    ----------
    texts : sequence of str, length n
        Timestamps without blanks around them.

    Returns
    -------
    int64 array, shape (n,)

    Raises
    ------
    BadTimestampError
        If a text has another form, or a day or time that does not exist.
    """
    for row, text in enumerate(texts):
        if not (_SECONDS_END <= len(text) <= _WIDTH and text.isascii()):
            raise BadTimestampError(row)
    codes = np.array(texts, dtype=f"S{_WIDTH}").view(np.uint8).reshape(len(texts), _WIDTH)
    seconds, date_good = _whole_seconds(codes)
    ticks, end = _fraction(codes)
    good = date_good & _zone_is_utc(codes, end)
    if not good.all():
        raise BadTimestampError(int(np.argmin(good)))
    return seconds * TICKS_PER_S + ticks


def _whole_seconds(codes: _Codes) -> tuple[_Whole, _Flags]:
    """Return the seconds since 1970 and which rows have a date and time that exist."""
    good = np.isin(codes[:, 10], [ord(" "), ord("T")])
    for position, mark in ((4, "-"), (7, "-"), (13, ":"), (16, ":")):
        good &= codes[:, position] == ord(mark)
    parts: list[_Whole] = []
    for start, stop in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19)):
        value, digits_good = _number(codes[:, start:stop])
        parts.append(value)
        good &= digits_good
    year, month, day, hour, minute, second = parts
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    dates = months.astype("datetime64[D]") + (day - 1)
    good &= (month >= 1) & (month <= 12) & (dates.astype("datetime64[M]") == months)
    good &= (hour < 24) & (minute < 60) & (second < 60)
    days: _Whole = dates.astype(np.int64)
    return ((days * 24 + hour) * 60 + minute) * 60 + second, good


def _fraction(codes: _Codes) -> tuple[_Whole, _Whole]:
    """Return the fraction in ticks and its end in each row; without a fraction, 0 and the end of the seconds."""
    ticks = np.zeros(len(codes), dtype=np.int64)
    end = np.full(len(codes), _SECONDS_END, dtype=np.int64)
    running = codes[:, _SECONDS_END] == ord(".")
    for i in range(_FRACTION_DIGITS):
        digit = codes[:, _SECONDS_END + 1 + i].astype(np.int64) - ord("0")
        running = running & (digit >= 0) & (digit <= 9)
        ticks += np.where(running, digit * 10 ** (_FRACTION_DIGITS - 1 - i), 0)
        end = np.where(running, _SECONDS_END + 2 + i, end)
    return ticks, end


def _zone_is_utc(codes: _Codes, end: _Whole) -> _Flags:
    """Return which rows end in one of the accepted zone marks from position `end` on."""
    good = np.zeros(len(codes), dtype=np.bool_)
    padded = np.pad(codes, ((0, 0), (0, _WIDTH)))
    width = _WIDTH - _SECONDS_END
    rest = np.take_along_axis(padded, end[:, None] + np.arange(width), axis=1)
    for zone in _ZONES:
        wanted = np.frombuffer(zone.encode().ljust(width, b"\0"), dtype=np.uint8)
        good |= (rest == wanted).all(axis=1)
    return good


def _number(codes: _Codes) -> tuple[_Whole, _Flags]:
    """Return the numbers in columns of digits of equal width, and which rows have only digits."""
    digits = codes.astype(np.int64) - ord("0")
    powers = 10 ** np.arange(codes.shape[1] - 1, -1, -1, dtype=np.int64)
    good: _Flags = np.logical_and.reduce((digits >= 0) & (digits <= 9), axis=1)
    return digits @ powers, good
