"""Relative errors of predictions, by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simqueue.calibration.case import Case


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """Relative errors of one group, in percent of the measured values.

    Attributes
    ----------
    group : str
        Name of the group.
    rows : int
        Number of measurements.
    mape, median, bias, worst : float
        Mean absolute, median absolute, mean signed, and largest absolute error.
    """

    group: str
    rows: int
    mape: float
    median: float
    bias: float
    worst: float


def percent_errors(cases: Sequence[Case], predicted_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the errors of predicted times, in percent of the measured ones; shape (cases,)."""
    percent: NDArray[np.float64] = 100 * (predicted_s / np.array([case.measured_s for case in cases]) - 1)
    return percent


def error_rows(cases: Sequence[Case], predicted_s: NDArray[np.float64], key: Callable[[Case], str]) -> list[ErrorRow]:
    """Return the errors of each group, with groups by `key` in order of first appearance."""
    percent = percent_errors(cases, predicted_s)
    groups = np.array([key(case) for case in cases])
    return [error_row(group, percent[groups == group]) for group in dict.fromkeys(groups.tolist())]


def error_row(group: str, percent: NDArray[np.float64]) -> ErrorRow:
    """Return the errors of one group, from relative errors in percent."""
    size = np.abs(percent)
    return ErrorRow(
        group, len(percent), float(size.mean()), float(np.median(size)), float(percent.mean()), float(size.max())
    )
