"""Builds step-time models from the `step_time` key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model
from simqueue.steptime.base import StepTime
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.linear import ConstantStepTime, LinearStepTime
from simqueue.steptime.preset import load_preset
from simqueue.steptime.roofline import RooflineStepTime
from simqueue.steptime.settings import (
    ConstantSettings,
    LinearSettings,
    RooflineSettings,
    StepTimeKinds,
    TableSettings,
)
from simqueue.steptime.table import read_step_table


def build(
    settings: StepTimeKinds,
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
        Start of relative paths of presets and tables.

    Raises
    ------
    InputError
        If the roofline lacks a model or a GPU, the heads of the model cannot be divided over that many GPUs, or a
        file named by the settings cannot be read.
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
            return read_step_table(settings.path, base_dir, rejects=settings.outside == "refuse")
        case RooflineSettings():
            if model is None or gpu is None:
                missing = " and ".join(key for key, value in (("model", model), ("gpu", gpu)) if value is None)
                raise InputError(f"kind roofline needs {missing}; give it, or use kind constant or linear", "step_time")
            return build_roofline(settings, model, gpu, tensor_parallel, base_dir)


def build_roofline(
    settings: RooflineSettings, model: Model, gpu: Gpu, tensor_parallel: int = 1, base_dir: Path = Path()
) -> RooflineStepTime | CalibratedStepTime:
    """Return the ideal or the calibrated roofline, depending on the preset; see `build`."""
    preset = load_preset(settings.preset, base_dir)
    if settings.expert_parallel and model.experts is None:
        raise InputError(f"{model.name} has no experts; leave it out", "step_time", "expert_parallel")
    bandwidth_share, mfu = settings.shares(base_dir)
    if preset.ideal:
        return RooflineStepTime.of(model, gpu, tensor_parallel, bandwidth_share=bandwidth_share, mfu=mfu)
    values = preset.coefficients.model_copy(update={"bandwidth_share": bandwidth_share, "mfu": mfu})
    if values != preset.coefficients:
        preset = replace(preset, changed=True)
    return CalibratedStepTime.of(model, gpu, tensor_parallel, values, preset, expert_parallel=settings.expert_parallel)
