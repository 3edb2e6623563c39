"""Constant step times, for small exact scenarios and for queueing theory."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.steptime.base import Batch, StepTime


@dataclass(frozen=True, slots=True)
class ConstantStepTime(StepTime):
    """Every step takes `step_s` seconds."""

    step_s: float

    def seconds(self, batch: Batch) -> float:
        """Return the constant."""
        return self.step_s

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the constant `n` times."""
        return [self.step_s] * n
