"""A step's time as a sum of a fixed part and parts proportional to what its batch holds."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.folding import ARRAYS_PAY_ABOVE, context_array, contexts


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
