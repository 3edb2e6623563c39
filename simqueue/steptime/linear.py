"""Constant and linear step times: a fixed part, plus parts proportional to the sums of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simqueue.steptime.base import Batch, StepTime, made_again
from simqueue.steptime.folding import ARRAYS_PAY_ABOVE, context_array, contexts


@dataclass(frozen=True, slots=True)
class ConstantStepTime(StepTime):
    """Every step takes `step_s` seconds, for small exact scenarios and for queueing theory."""

    step_s: float

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)

    def seconds(self, batch: Batch) -> float:
        """Return the constant."""
        return self.step_s

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the constant `n` times."""
        return [self.step_s] * n


@dataclass(frozen=True, slots=True)
class LinearStepTime(StepTime):
    """The linear model; `simqueue.steptime.settings.LinearSettings` has the formula. All values are seconds >= 0."""

    overhead_s: float
    per_prefill_token_s: float
    decode_base_s: float
    per_decode_s: float
    per_context_token_s: float

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)

    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step; 0 only for an empty batch without overhead."""
        return self._fixed_s(batch) + self.per_context_token_s * batch.context_tokens

    def ends(self, start_s: float, batch: Batch, n: int) -> list[float]:
        """Return the end of each of `n` consecutive steps; a single step, the usual case, is computed inline."""
        if n > 1:
            return StepTime.ends(self, start_s, batch, n)
        decode_seqs, _, context_tokens, prefill, _ = batch
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
        """Return the durations of `n` consecutive steps; they are linear in the context."""
        fixed, slope = self._fixed_s(batch), self.per_context_token_s
        if not batch.decode_seqs or not slope:
            return [fixed + slope * batch.context_tokens] * n
        if n > ARRAYS_PAY_ABOVE:
            line: list[float] = (fixed + slope * context_array(batch, n)).tolist()
            return line
        return [fixed + slope * context for context in contexts(batch, n)]

    def _fixed_s(self, batch: Batch) -> float:
        """Return the part that does not depend on the context."""
        fixed = self.overhead_s
        if batch.prefill:
            fixed += self.per_prefill_token_s * batch.prefill_tokens
        if batch.decode_seqs:
            fixed += self.decode_base_s + self.per_decode_s * batch.decode_seqs
        return fixed
