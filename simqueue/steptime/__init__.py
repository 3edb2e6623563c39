"""How long a step takes: constant, linear or roofline, behind one contract."""

from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.constant import ConstantSettings, ConstantStepTime
from simqueue.steptime.factory import StepTimeSettings, build
from simqueue.steptime.linear import LinearSettings, LinearStepTime
from simqueue.steptime.roofline import (
    RooflineSettings,
    RooflineStepTime,
    StepTerms,
    preset_names,
    preset_rows,
)

__all__ = [
    "Batch",
    "ConstantSettings",
    "ConstantStepTime",
    "LinearSettings",
    "LinearStepTime",
    "RooflineSettings",
    "RooflineStepTime",
    "StepTerms",
    "StepTime",
    "StepTimeSettings",
    "build",
    "preset_names",
    "preset_rows",
]
