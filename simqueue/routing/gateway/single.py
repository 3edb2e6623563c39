"""Arithmetic with 32-bit floating-point numbers, in which these routers compare."""

from __future__ import annotations

import struct

_SINGLE = struct.Struct("f")


def single(value: float) -> float:
    """Return the nearest 32-bit number."""
    return float(_SINGLE.unpack(_SINGLE.pack(value))[0])


def ratio(part: int, whole: int) -> float:
    """Return ``part / whole``; 0 if `whole` is 0. Rounding it twice changes nothing: a double has the digits for it."""
    return single(single(part) / single(whole)) if whole else 0.0


def exceeds(high: int, low: int, absolute: float, relative: float) -> bool:
    """Return whether two loads are imbalanced: by more than `absolute`, and by more than the factor `relative`."""
    return high - low > absolute and single(high) > single(single(low) * single(relative))
