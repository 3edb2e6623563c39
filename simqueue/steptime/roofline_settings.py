"""``step_time: {kind: roofline, ...}``: which preset, and what replaces its values."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from simqueue.hardware import Gpu, Model
from simqueue.settings import Settings
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.preset import PRESETS, Preset, is_file, load_preset, preset_names
from simqueue.steptime.roofline import RooflineStepTime


class RooflineSettings(Settings):
    """``step_time: {kind: roofline, preset: ideal}``; a share that is given replaces the preset's."""

    kind: Literal["roofline"] = "roofline"
    preset: str = Field(
        default="ideal",
        description="A name from `simqueue list presets`, or a YAML file that `simqueue calibrate` wrote.",
    )
    bandwidth_share: float | None = Field(
        default=None, ge=0.001, le=1, description="Share of peak bandwidth reached. Default: the preset's."
    )
    mfu: float | None = Field(
        default=None,
        ge=0.001,
        le=1,
        description="Model FLOPs utilisation: share of the dense peak reached. Default: the preset's.",
    )

    @field_validator("preset")
    @classmethod
    def _known(cls, preset: str) -> str:
        if not is_file(preset) and preset not in preset_names():
            raise PydanticCustomError("unknown_preset", "{line}", {"line": PRESETS.unknown(preset).text})
        return preset

    def shares(self, base_dir: Path = Path()) -> tuple[float, float]:
        """Return the shares of peak bandwidth and of peak FLOP/s: those given, else the preset's."""
        return self._shares_with(load_preset(self.preset, base_dir))

    def _shares_with(self, preset: Preset) -> tuple[float, float]:
        values = preset.coefficients
        return (
            values.bandwidth_share if self.bandwidth_share is None else self.bandwidth_share,
            values.mfu if self.mfu is None else self.mfu,
        )

    def resolved(self, base_dir: Path = Path()) -> RooflineSettings:
        """Return the same settings with every share filled in."""
        bandwidth_share, mfu = self.shares(base_dir)
        return RooflineSettings(preset=self.preset, bandwidth_share=bandwidth_share, mfu=mfu)

    def build(
        self, model: Model, gpu: Gpu, tensor_parallel: int, base_dir: Path = Path()
    ) -> RooflineStepTime | CalibratedStepTime:
        """Return the step-time model: the ideal roofline or the calibrated one, as the preset says.

        Raises
        ------
        InputError
            The preset's file cannot be read, or model, GPU and tensor_parallel do not go together.
        """
        preset = load_preset(self.preset, base_dir)
        bandwidth_share, mfu = self._shares_with(preset)
        if preset.ideal:
            return RooflineStepTime.of(model, gpu, tensor_parallel, bandwidth_share=bandwidth_share, mfu=mfu)
        values = preset.coefficients.model_copy(update={"bandwidth_share": bandwidth_share, "mfu": mfu})
        return CalibratedStepTime.of(model, gpu, tensor_parallel, values, preset)
