"""Step times whose sums are exact, so that ties are real ties, and one whose sums are rounded."""

from __future__ import annotations

from simqueue.steptime.linear import ConstantStepTime, LinearStepTime

TICK_S = 2**-7
"""Grid of arrivals, and duration of a constant step: sums on it are exact, so ties are real ties."""
UNIT_S = 2**-16
"""Unit of an exact linear model off that grid: sums and products stay exact, in any order."""
TICK_UNITS = 512

CONSTANT = ConstantStepTime(TICK_S)
EXACT_LINEAR = LinearStepTime(37 * UNIT_S, 5 * UNIT_S, 11 * UNIT_S, 3 * UNIT_S, 1 * UNIT_S)
ROUGH_LINEAR = LinearStepTime(0.0021, 3.3e-5, 0.0007, 1.1e-4, 1.7e-6)
