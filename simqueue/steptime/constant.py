"""Every step takes the same time, whatever its batch: for exact small scenarios and for queueing theory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from simqueue.settings import Settings
from simqueue.steptime.base import Batch, StepTime


class ConstantSettings(Settings):
    """``step_time: {kind: constant, seconds: 0.01}``."""

    kind: Literal["constant"] = "constant"
    seconds: float = Field(gt=0, le=1e6, description="How long each step takes.", json_schema_extra={"unit": "s"})


@dataclass(frozen=True, slots=True)
class ConstantStepTime(StepTime):
    """A step takes `step_s` seconds."""

    step_s: float

    def seconds(self, batch: Batch) -> float:
        """Return the constant."""
        return self.step_s

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the constant `n` times."""
        return [self.step_s] * n
