"""Whether requests that start together end together, again and again.

Each seat is a renewal process: a request leaves, and the next one starts. Let φ be the characteristic function of the
steps for which a seat is taken. A common rhythm of frequency f dies out in the fewer generations, the farther φ(f) is
from 1. With equal requests it is 1 for the rhythm of one request, which never dies out; the same is true if all others
are multiples of the most frequent one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_NEAR = 0.3
"""|1 - φ| up to which a rhythm counts: for lengths that vary by 13 % or less around one value."""
_LOWEST = 0.5
"""Frequency, in rhythms per mean request, above which there is one: φ(0) is always 1."""
_FINE, _FINEST = 64, 1 << 18
"""Frequencies per whole rhythm of the longest request, and their largest number."""


def keeps_rhythm(steps: NDArray[Any]) -> bool:
    """Return whether requests of a sample, which take their seats for so many steps each, keep a common rhythm."""
    chances = np.bincount(steps) / len(steps)
    mean = float(np.mean(steps))
    if np.var(steps) <= (_NEAR / 2 / np.pi * mean) ** 2 / 10:
        return True  # so long that the frequencies would not be fine enough
    many = min(_FINEST, _FINE << (len(chances) - 1).bit_length())
    transform = np.fft.rfft(chances, many)[int(np.ceil(_LOWEST * many / mean)) :]
    return bool(len(transform) and np.abs(1 - transform).min() <= _NEAR)
