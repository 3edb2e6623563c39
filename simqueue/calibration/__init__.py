"""Fits step times to measurements of single steps or of served runs."""

from simqueue.calibration.case import Case, ServedCase, StepCase
from simqueue.calibration.errors import ErrorRow, error_row, error_rows, percent_errors
from simqueue.calibration.fit import BOUNDS, FRONT_END, START, Fit, fit, predict, price

__all__ = [
    "BOUNDS",
    "FRONT_END",
    "START",
    "Case",
    "ErrorRow",
    "Fit",
    "ServedCase",
    "StepCase",
    "error_row",
    "error_rows",
    "fit",
    "percent_errors",
    "predict",
    "price",
]
