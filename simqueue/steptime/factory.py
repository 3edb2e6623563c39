"""From the scenario's `step_time` key to a model that prices steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model
from simqueue.steptime.base import StepTime
from simqueue.steptime.constant import ConstantSettings, ConstantStepTime
from simqueue.steptime.linear import LinearSettings, LinearStepTime
from simqueue.steptime.preset import is_file
from simqueue.steptime.roofline_settings import RooflineSettings
from simqueue.steptime.table import TableSettings, read_step_table

StepTimeSettings = Annotated[
    ConstantSettings | LinearSettings | RooflineSettings | TableSettings, Field(discriminator="kind")
]
"""What a scenario's `step_time` key takes; `kind` tells which."""


Kinds = ConstantSettings | LinearSettings | RooflineSettings | TableSettings


def placed(settings: Kinds, base_dir: Path) -> Kinds:
    """Return the same settings with a relative path of a preset or table starting at `base_dir`."""
    if isinstance(settings, TableSettings):
        return settings.model_copy(update={"path": str(base_dir / settings.path)})
    if isinstance(settings, RooflineSettings) and is_file(settings.preset):
        return settings.model_copy(update={"preset": str(base_dir / settings.preset)})
    return settings


def build(
    settings: Kinds,
    model: Model | None = None,
    gpu: Gpu | None = None,
    tensor_parallel: int = 1,
    base_dir: Path = Path(),
) -> StepTime:
    """Return the step-time model that the settings describe.

    Parameters
    ----------
    settings : ConstantSettings, LinearSettings, RooflineSettings or TableSettings
        The `step_time` key.
    model, gpu : Model or None, Gpu or None
        Needed by the roofline only.
    tensor_parallel : int
        GPUs that share the model; used by the roofline only.
    base_dir : Path
        Where relative paths of presets and tables start.

    Raises
    ------
    InputError
        The roofline lacks a model or a GPU, the model's heads cannot be shared out over so many GPUs, or a file that
        the settings name cannot be read.
    """
    match settings:
        case ConstantSettings():
            return ConstantStepTime(settings.seconds)
        case LinearSettings():
            return LinearStepTime(
                settings.overhead_s,
                settings.per_prefill_token_s,
                settings.decode_base_s,
                settings.per_decode_s,
                settings.per_context_token_s,
            )
        case TableSettings():
            return read_step_table(settings.path, base_dir, refuses=settings.outside == "refuse")
        case RooflineSettings():
            return _roofline(settings, model, gpu, tensor_parallel, base_dir)


def _roofline(
    settings: RooflineSettings, model: Model | None, gpu: Gpu | None, tensor_parallel: int, base_dir: Path
) -> StepTime:
    if model is None or gpu is None:
        missing = " and ".join(key for key, value in (("model", model), ("gpu", gpu)) if value is None)
        raise InputError(f"step_time: kind roofline needs {missing}; give it, or take kind constant or linear")
    return settings.build(model, gpu, tensor_parallel, base_dir)
