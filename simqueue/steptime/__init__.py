"""How long a step takes: constant, linear, roofline (ideal or calibrated) or a measured table, behind one contract."""

from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.coefficients import Coefficients
from simqueue.steptime.constant import ConstantSettings, ConstantStepTime
from simqueue.steptime.factory import StepTimeSettings, build, placed
from simqueue.steptime.linear import LinearSettings, LinearStepTime
from simqueue.steptime.preset import Preset, load_preset, preset_names, preset_rows
from simqueue.steptime.roofline import RooflineStepTime, StepTerms
from simqueue.steptime.roofline_settings import RooflineSettings
from simqueue.steptime.table import TableSettings, TableStepTime
from simqueue.steptime.terms import Term

__all__ = [
    "Batch",
    "CalibratedStepTime",
    "Coefficients",
    "ConstantSettings",
    "ConstantStepTime",
    "LinearSettings",
    "LinearStepTime",
    "Preset",
    "RooflineSettings",
    "RooflineStepTime",
    "StepTerms",
    "StepTime",
    "StepTimeSettings",
    "TableSettings",
    "TableStepTime",
    "Term",
    "build",
    "load_preset",
    "placed",
    "preset_names",
    "preset_rows",
]
