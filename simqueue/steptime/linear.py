"""A step's time as a sum of a fixed part and parts proportional to what its batch holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from simqueue.settings import Settings
from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.folding import ARRAYS_PAY_ABOVE, context_array, contexts


def _seconds(description: str) -> Any:
    return Field(default=0.0, ge=0, le=1e6, description=description, json_schema_extra={"unit": "s"})


class LinearSettings(Settings):
    """``step_time: {kind: linear, ...}``.

    A step takes ``overhead_s + per_prefill_token_s * prefill_tokens`` and, if anything decodes,
    ``+ decode_base_s + per_decode_s * decode_seqs + per_context_token_s * context_tokens``.
    Every step that runs something must take time, so either `overhead_s` is positive, or both
    `per_prefill_token_s` and one of `decode_base_s` and `per_decode_s` are.
    """

    kind: Literal["linear"] = "linear"
    overhead_s: float = _seconds("Fixed part of every step.")
    per_prefill_token_s: float = _seconds("Per prompt token computed in the step, padding included.")
    decode_base_s: float = _seconds("Added once to a step in which anything decodes.")
    per_decode_s: float = _seconds("Per request that decodes in the step.")
    per_context_token_s: float = _seconds("Per token that the step's decodes attend to, summed over them.")

    @model_validator(mode="after")
    def _every_step_takes_time(self) -> Self:
        decode_takes_time = self.decode_base_s > 0 or self.per_decode_s > 0
        if not (self.overhead_s > 0 or (self.per_prefill_token_s > 0 and decode_takes_time)):
            raise PydanticCustomError(
                "zero_step",
                "a step could take no time: make overhead_s positive, or both per_prefill_token_s and one of "
                "decode_base_s and per_decode_s",
            )
        return self


@dataclass(frozen=True, slots=True)
class LinearStepTime(StepTime):
    """The affine model; `LinearSettings` has the formula. All values are seconds, none negative."""

    overhead_s: float
    per_prefill_token_s: float
    decode_base_s: float
    per_decode_s: float
    per_context_token_s: float

    def seconds(self, batch: Batch) -> float:
        """Return how long one step takes; 0 only for an empty batch without overhead."""
        return self._fixed_s(batch) + self.per_context_token_s * batch.context_tokens

    def ends(self, start_s: float, batch: Batch, n: int) -> list[float]:
        """Return when each of `n` steps in a row ends; a single one, the most frequent case, without detours."""
        if n > 1:
            return StepTime.ends(self, start_s, batch, n)
        decode_seqs, _, context_tokens, prefill, _, _ = batch
        fixed = self.overhead_s
        if prefill:
            tokens = 0
            for _, new in prefill:
                tokens += new
            fixed += self.per_prefill_token_s * tokens
        if decode_seqs:
            fixed += self.decode_base_s + self.per_decode_s * decode_seqs
        return [start_s + (fixed + self.per_context_token_s * context_tokens)]

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the durations of `n` steps in a row; a straight line in the context."""
        fixed, slope = self._fixed_s(batch), self.per_context_token_s
        if not batch.decode_seqs or not slope:
            return [fixed + slope * batch.context_tokens] * n
        if n > ARRAYS_PAY_ABOVE:
            line: list[float] = (fixed + slope * context_array(batch, n)).tolist()
            return line
        return [fixed + slope * context for context in contexts(batch, n)]

    def _fixed_s(self, batch: Batch) -> float:
        """Return the part that stays while the same composition repeats."""
        fixed = self.overhead_s
        if batch.prefill:
            fixed += self.per_prefill_token_s * batch.prefill_tokens
        if batch.decode_seqs:
            fixed += self.decode_base_s + self.per_decode_s * batch.decode_seqs
        return fixed
