"""Checks of the valid range: formulas raise an error outside it and never extrapolate.

Rates and durations lie within `LEAST` and `MOST`, so that no product or power of them overflows. What is left of a
server's capacity is computed in exact arithmetic: close to saturation a rounded utilisation has lost all its digits.
"""

from __future__ import annotations

import math
from fractions import Fraction

from simqueue.errors import InputError, show

LEAST = 1e-30
MOST = 1e30
_MOST_MOMENT = 1e90
"""Largest finite second or third moment: the cube of the largest duration."""


def positive(name: str, value: float) -> None:
    """Raise `InputError` unless `value` is a number from 1e-30 to 1e+30."""
    if not LEAST <= value <= MOST:
        raise InputError(f"{name} = {_shown(value)}: must be a number > 0, from {LEAST:g} to {MOST:g}")


def at_least(name: str, value: float, bound: float) -> None:
    """Raise `InputError` unless `value` is a number from `bound` to 1e+30."""
    if not bound <= value <= MOST:
        raise InputError(f"{name} = {_shown(value)}: must be a number from {bound:g} to {MOST:g}")


def moment(name: str, value: float, least: float, because: str) -> None:
    """Raise `InputError` unless a moment is at least what others imply (rounding allowed); it may be infinite."""
    if not (least * (1 - 1e-12) <= value <= _MOST_MOMENT or value == math.inf):
        raise InputError(
            f"{name} = {_shown(value)}: must be at least {least:g} ({because}), and at most {_MOST_MOMENT:g} or inf"
        )


def whole(name: str, value: int, most: int) -> int:
    """Return a whole number from 1 to `most`; raise `InputError` if `value` is none."""
    if value > most:
        raise InputError(f"{name} = {_shown(value)}: must be at most {most:,}, a whole number from 1")
    if not (value >= 1 and value == int(value)):
        raise InputError(f"{name} = {_shown(value)}: must be a whole number, at least 1")
    return int(value)


def share(name: str, value: float) -> None:
    """Raise `InputError` unless `value` lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"{name} = {_shown(value)}: must be > 0 and < 1")


def unused(load: Fraction, capacity: int = 1, *, grows_with: str = "arrival_rate") -> float:
    """Return capacity - load, rounded once; raise `InputError` unless the queue has a steady state.

    Parameters
    ----------
    load : Fraction
        Mean number of busy servers that the arrivals need.
    capacity : int
        Number of servers, or of customers that a server takes at a time.
    grows_with : str
        The parameter to which the load is proportional.
    """
    if load >= capacity:
        value = float(load / capacity)
        raise InputError(f"utilisation {value:.6g}: must be > 0 and < 1 for a steady state; it grows with {grows_with}")
    return float(capacity - load)


def product(*factors: float) -> Fraction:
    """Return the exact product of floating-point numbers."""
    return math.prod(map(Fraction, factors), start=Fraction(1))


def ratio(arrival_rate: float, service_rate: float) -> Fraction:
    """Return the exact quotient of two rates."""
    return Fraction(arrival_rate) / Fraction(service_rate)


def _shown(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < MOST else str(show(value))
    return f"{value:g}"
