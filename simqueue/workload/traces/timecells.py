"""Cells that hold a time: a number in the unit of the file, or a date with a time of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.datafiles.columns import Columns, float_number
from simqueue.datafiles.numbers import decimal
from simqueue.errors import InputError
from simqueue.workload.traces.formats import UNITS_PER_S, TimeUnit
from simqueue.workload.traces.times import Times
from simqueue.workload.traces.timestamps import TICKS_PER_S, BadTimestampError, parse_timestamps

DATE: Final = "a time such as '2026-05-01T12:00:00.25Z' or '2026-05-01 14:00:00+02:00' (without a zone: UTC)"
"""What is allowed as a date, for messages."""

_NUMBER: Final = "a finite number of at least 0"
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LONGEST_FRACTION: Final = 18

_FORM: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[ Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?: ?(?:[Zz]|UTC|([+-])(\d\d):?(\d\d)?))?", re.ASCII
)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """A column of times that are later or earlier than the arrivals of their rows.

    Attributes
    ----------
    after : int array
        Ticks after the arrival of the row; negative if it is before. 0 where nothing is given.
    given : bool array
        Whether the row has such a time.
    """

    after: NDArray[Any]
    given: NDArray[np.bool_]


def read_times(
    table: Columns, arrival: str, unit: TimeUnit, *, unit_given: bool = False, moments: Sequence[str] = ()
) -> tuple[Times, dict[str, Moments]]:
    """Return the arrival times of a table, and further columns of times; cells of those may be empty.

    Parameters
    ----------
    table : Columns
    arrival : str
        The column of arrival times.
    unit : TimeUnit
        Unit of the times, if they are numbers.
    unit_given : bool
        Whether the user said so; then dates are an error.
    moments : sequence of str
        The further columns, which the table has.

    Raises
    ------
    InputError
        If the column of arrivals is missing, or a cell is no time of the form of the first one.
    """
    columns = {name: table.text(name) for name in (arrival, *moments)}
    cells = [(name, row) for name in moments for row, text in enumerate(columns[name]) if text]
    texts = [*columns[arrival], *(columns[name][row] for name, row in cells)]
    try:
        times = _times(texts, unit)
    except BadTimestampError as bad:
        name, row = (arrival, bad.row) if bad.row < len(table) else cells[bad.row - len(table)]
        raise table.wrong(row, name, columns[name][row], bad.allowed) from None
    if times.dated and unit_given:
        raise InputError(f"{table.label} has dates, not numbers of a unit: leave this key out", "trace", "time_unit")
    arrivals = times[: len(table)]
    after = {name: np.zeros(len(table), dtype=times.ticks.dtype) for name in moments}
    for position, (name, row) in enumerate(cells, start=len(table)):
        after[name][row] = times.ticks[position] - times.ticks[row]
    given = {name: np.array([bool(text) for text in columns[name]]) for name in moments}
    return arrivals, {name: Moments(after[name], given[name]) for name in moments}


def dates(texts: Sequence[str]) -> Times:
    """Return dates as times since 1970.

    Raises
    ------
    BadTimestampError
        If a text is no date, or one that does not exist.
    """
    try:
        return Times(parse_timestamps(texts), TICKS_PER_S, dated=True)  # the common forms, many rows at once
    except BadTimestampError:
        return Times.of([_date(row, text) for row, text in enumerate(texts)], dated=True)


def _times(texts: Sequence[str], unit: TimeUnit) -> Times:
    try:
        decimal(texts[0])
    except ValueError:
        if _FORM.fullmatch(texts[0]) is not None:
            return dates(texts)
        if not _is_float(texts[0]):
            raise BadTimestampError(0, f"a number, or {DATE}") from None
    return Times.of([_number(row, text) for row, text in enumerate(texts)], UNITS_PER_S[unit])


def _number(row: int, text: str) -> tuple[int, int]:
    try:
        number = decimal(text)
    except ValueError:
        raise BadTimestampError(row, _NUMBER if _is_float(text) else "a number") from None
    if number[0] < 0:
        raise BadTimestampError(row, _NUMBER)
    return number


def _is_float(text: str) -> bool:
    """Return whether this is a number, though perhaps not one that a time can be, such as ``nan``."""
    try:
        float_number(text)
    except ValueError:
        return False
    return True


def _date(row: int, text: str) -> tuple[int, int]:
    """Return one date as (mantissa, places) of seconds since 1970."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise BadTimestampError(row, DATE)
    day, hour, minute, second, fraction, sign, zone_hour, zone_minute = found.groups()
    days = _days(day)
    clock, zone = (int(hour), int(minute), int(second)), (int(zone_hour or 0), int(zone_minute or 0))
    digits = (fraction or "").rstrip("0")
    exists = days is not None and clock[0] < 24 and max(clock[1:]) < 60 and zone[0] < 24 and zone[1] < 60
    if not exists or len(digits) > _LONGEST_FRACTION:
        raise BadTimestampError(row, DATE)
    ahead_s = (zone[0] * 60 + zone[1]) * (-60 if sign == "-" else 60)
    seconds = ((days or 0) * 24 + clock[0]) * 3600 + clock[1] * 60 + clock[2] - ahead_s
    return seconds * 10 ** len(digits) + int(digits or 0), len(digits)


@lru_cache(maxsize=1000)
def _days(day: str) -> int | None:
    """Return the days from 1970 to a date, or None if there is no such date."""
    try:
        return date.fromisoformat(day).toordinal() - _EPOCH
    except ValueError:
        return None
