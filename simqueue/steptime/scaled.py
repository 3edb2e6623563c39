"""Step times multiplied by a factor: hardware that is faster or slower than its model says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simqueue.steptime.base import Batch, StepTime, made_again
from simqueue.steptime.linear import ConstantStepTime, LinearStepTime

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ScaledStepTime(StepTime):
    """Every step takes `factor` times as long as by `inner`; made by `scaled`."""

    inner: StepTime
    factor: float

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)

    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step."""
        return self.factor * self.inner.seconds(batch)

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the durations of `n` consecutive steps, each multiplied by itself as in `seconds`."""
        factor = self.factor
        return [factor * one_s for one_s in self.inner.durations(batch, n)]

    def warnings(self, steps: Mapping[str, NDArray[Any]]) -> list[str]:
        """Return what left the valid range of the inner model: a factor widens no range."""
        return self.inner.warnings(steps)


def scaled(step_time: StepTime, factor: float) -> StepTime:
    """Return a model whose steps take `factor` times as long (> 0).

    A factor of 1 is the model itself. Constant and linear times stay so, with other values: closed forms apply to them.
    """
    if factor == 1:
        return step_time
    if isinstance(step_time, ConstantStepTime):
        return ConstantStepTime(factor * step_time.step_s)
    if isinstance(step_time, LinearStepTime):
        return LinearStepTime(
            factor * step_time.overhead_s,
            factor * step_time.per_prefill_token_s,
            factor * step_time.decode_base_s,
            factor * step_time.per_decode_s,
            factor * step_time.per_context_token_s,
        )
    if isinstance(step_time, ScaledStepTime):
        return ScaledStepTime(step_time.inner, factor * step_time.factor)
    return ScaledStepTime(step_time, factor)


def unscaled(step_time: StepTime) -> StepTime:
    """Return the model under a factor, which knows its preset; any other model itself."""
    return step_time.inner if isinstance(step_time, ScaledStepTime) else step_time


def factor_of(step_time: StepTime) -> float:
    """Return the factor over `unscaled`."""
    return step_time.factor if isinstance(step_time, ScaledStepTime) else 1.0
