"""Step-time models: constant, linear, roofline (ideal or calibrated) or a measured table, with one contract.

The package offers the contract and what scenarios can write down. Models are in `constant`, `linear`, `roofline`,
`calibrated` and `table`; `simqueue.steptime.build.build` makes them of settings.
"""

from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.coefficients import Coefficients
from simqueue.steptime.preset import Preset, load_preset, preset_names, preset_rows
from simqueue.steptime.settings import (
    ConstantSettings,
    LinearSettings,
    RooflineSettings,
    StepTimeFactor,
    StepTimeSettings,
    TableSettings,
)
from simqueue.steptime.work import Term

__all__ = [
    "Batch",
    "Coefficients",
    "ConstantSettings",
    "LinearSettings",
    "Preset",
    "RooflineSettings",
    "StepTime",
    "StepTimeFactor",
    "StepTimeSettings",
    "TableSettings",
    "Term",
    "load_preset",
    "preset_names",
    "preset_rows",
]
