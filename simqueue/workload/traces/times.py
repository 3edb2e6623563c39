"""Times of the rows of a trace, exact as the file has them until they become seconds of a run.

A sum or difference of floats is rounded, so two files with the same gaps would give arrivals that differ in the last
digits, and a request that arrives with the end of a step would miss it. So times are whole ticks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_LARGEST_EXACT: Final = 2**53
"""Whole numbers up to here are floats without rounding."""

_LARGEST_TICK: Final = 2**61
_LARGEST_EXACT_POWER: Final = 10**22


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """One time per row: ``origin_s + ticks / ticks_per_s``.

    Attributes
    ----------
    ticks : array of int64, of Python integers (``object``), or of float64
        Readers give whole numbers; ``object`` holds those beyond int64. Floats are for times that were moved at random.
    ticks_per_s : int
    origin_s : Fraction
    dated : bool
        Whether these are dates, rather than numbers from a start that the file leaves open.
    """

    ticks: NDArray[Any]
    ticks_per_s: int
    origin_s: Fraction = Fraction(0)
    dated: bool = False

    @classmethod
    def of(cls, numbers: Sequence[tuple[int, int]], units_per_s: int = 1, *, dated: bool = False) -> Times:
        """Return the times mantissa / 10^places, in units of which `units_per_s` make a second."""
        most = max((places for _, places in numbers), default=0)
        powers = [10 ** (most - places) for places in range(most + 1)]
        ticks = [mantissa * powers[places] for mantissa, places in numbers]
        return cls(_whole(ticks), units_per_s * 10**most, dated=dated)

    def __len__(self) -> int:
        return len(self.ticks)

    def __getitem__(self, rows: slice) -> Times:
        return replace(self, ticks=self.ticks[rows])

    def at(self, row: Any) -> Fraction:
        """Return the time of one row in seconds, exactly."""
        return self.origin_s + Fraction(np.asarray(self.ticks[row]).tolist()) / self.ticks_per_s

    def since_s(self, origin_s: Fraction, rows: Any = slice(None), later: Any = 0) -> NDArray[np.float64]:
        """Return times as seconds since `origin_s`, each rounded once.

        Parameters
        ----------
        origin_s : Fraction
        rows : index of an array
            Which rows; all by default.
        later : int array
            Ticks that are added to each time.
        """
        shift = (origin_s - self.origin_s) * self.ticks_per_s
        ticks = self.ticks[rows] + later
        if ticks.dtype.kind == "f":
            moved: NDArray[np.float64] = (ticks - float(shift)) / self.ticks_per_s
            return moved
        return _quotients(ticks, shift, self.ticks_per_s)

    def lengths_s(self, ticks: NDArray[Any]) -> NDArray[np.float64]:
        """Return numbers of ticks in seconds."""
        return _quotients(ticks, Fraction(0), self.ticks_per_s)


def _whole(numbers: Sequence[int]) -> NDArray[Any]:
    """Return whole numbers as int64 if they fit with room for differences, else as Python integers."""
    small = not numbers or (max(numbers) < _LARGEST_TICK and min(numbers) > -_LARGEST_TICK)
    return np.array(numbers, dtype=np.int64 if small else object)


def _quotients(ticks: NDArray[Any], shift: Fraction, per_s: int) -> NDArray[np.float64]:
    """Return (ticks - shift) / per_s, correctly rounded."""
    whole = shift.denominator == 1 and abs(shift.numerator) < _LARGEST_TICK
    if ticks.dtype != object and whole and per_s <= _LARGEST_EXACT_POWER:
        left = ticks - shift.numerator
        if not len(left) or np.abs(left).max() < _LARGEST_EXACT:
            exact: NDArray[np.float64] = left / per_s
            return exact
    scale = shift.denominator
    # the quotient of two Python integers is rounded once, whatever their size
    quotients = [(tick * scale - shift.numerator) / (per_s * scale) for tick in ticks.tolist()]
    return np.array(quotients, dtype=np.float64)
