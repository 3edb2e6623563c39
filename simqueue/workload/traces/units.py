"""Whether the unit of the times of a trace can be right: a service that is recorded has requests at a human pace."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from simqueue.workload.traces.formats import UNITS_PER_S, TimeUnit

_HIGHEST_RPS: Final = 1000
_LOWEST_RPS: Final = Fraction(1, 60)
_FEWEST_ROWS: Final = 3
_DATES_S: Final = (946_684_800, 4_102_444_800)
"""The years 2000 and 2100, in seconds since 1970."""


def about_unit(label: str, unit: TimeUnit, number: int, first_s: Fraction, last_s: Fraction) -> str | None:
    """Return a note if the times of a trace are hardly in their unit, with one that is plausible; else None.

    Times that are dates of this century in their unit are dates in no other one, whatever the rate.

    Parameters
    ----------
    label : str
        The name of the file.
    unit : str
        The unit in which its times were read.
    number : int
        Rows that were read.
    first_s, last_s : Fraction
        Earliest and latest time.
    """
    dated = _unit_of_dates(unit, first_s)
    if dated is not None:
        seen = f"its times are {float(first_s):.3g} s and later, read in {unit}"
        return f"{label}: {seen}; they look like times since 1970 in {dated}: time_unit: {dated}"
    span_s = last_s - first_s
    if number < _FEWEST_ROWS or span_s <= 0 or _DATES_S[0] <= first_s <= _DATES_S[1]:
        return None
    rate_rps = (number - 1) / span_s
    if _LOWEST_RPS <= rate_rps <= _HIGHEST_RPS:
        return None
    pace = (
        f"{float(rate_rps):,.0f} requests per second" if rate_rps > 1 else f"a request in {float(1 / rate_rps):.3g} s"
    )
    better = _plausible_unit(unit, rate_rps)
    if better is None:
        return f"{label}: {pace} on average, with times in {unit}; is this the right unit?"
    other = float(_in_unit(rate_rps, unit, better))
    return f"{label}: {pace} on average, with times in {unit}; in {better} it would be {other:.3g} per second"


def _in_unit(rate_rps: Fraction, unit: TimeUnit, other: TimeUnit) -> Fraction:
    return rate_rps * UNITS_PER_S[other] / UNITS_PER_S[unit]


def _plausible_unit(unit: TimeUnit, rate_rps: Fraction) -> TimeUnit | None:
    """Return the unit that brings a rate nearest to one request per second, if that is plausible."""
    nearest = min(UNITS_PER_S, key=lambda other: abs(math.log(_in_unit(rate_rps, unit, other))))
    return nearest if _LOWEST_RPS <= _in_unit(rate_rps, unit, nearest) <= _HIGHEST_RPS else None


def _unit_of_dates(unit: TimeUnit, first_s: Fraction) -> TimeUnit | None:
    """Return the smaller unit in which times beyond the year 2100 are dates of this century, or None."""
    if first_s <= _DATES_S[1]:
        return None
    for other, per_s in UNITS_PER_S.items():
        if _DATES_S[0] <= first_s * UNITS_PER_S[unit] / per_s <= _DATES_S[1]:
            return other
    return None
