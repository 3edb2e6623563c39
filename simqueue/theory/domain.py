"""Checks of the valid range: formulas raise an error outside it and never extrapolate."""

from __future__ import annotations

import math

from simqueue.errors import InputError


def positive(name: str, value: float) -> None:
    """Raise `InputError` unless `value` is a finite number > 0."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} = {value:g}: must be a finite number > 0")


def at_least(name: str, value: float, bound: float) -> None:
    """Raise `InputError` unless `value` is a finite number >= `bound`."""
    if not (math.isfinite(value) and value >= bound):
        raise InputError(f"{name} = {value:g}: must be a finite number >= {bound:g}")


def at_most(name: str, value: float, bound: float) -> None:
    """Raise `InputError` if `value` is above `bound`, because a formula would take too long."""
    if value > bound:
        raise InputError(f"{name} = {value:,}: must be at most {bound:,}")


def share(name: str, value: float) -> None:
    """Raise `InputError` unless `value` lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"{name} = {value:g}: must be > 0 and < 1")


def stable(utilisation: float) -> None:
    """Raise `InputError` unless the queue has a steady state: utilisation > 0 and < 1."""
    if not 0 < utilisation < 1:
        raise InputError(
            f"utilisation {utilisation:.6g}: must be > 0 and < 1 for a steady state; lower the arrival rate"
        )
