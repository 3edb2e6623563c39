"""The ideal roofline: the duration of a step is the larger of memory time and compute time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from simqueue.hardware import Gpu, Model
from simqueue.steptime.base import Batch, StepTime, made_again
from simqueue.steptime.folding import ARRAYS_PAY_ABOVE, context_array, contexts
from simqueue.steptime.work import Term, Work

Bound = Literal["memory", "compute"]


@dataclass(frozen=True, slots=True)
class StepTerms:
    """Bytes, FLOPs and durations of one step. Bytes and FLOPs are per GPU.

    Attributes
    ----------
    weight_bytes, kv_bytes : float
        Bytes read from memory: weights once per step, keys and values per token attended to.
    linear_flops, head_flops, attention_flops : float
        FLOPs of the layers' matrices, of the output head for sampled rows, and of causal attention of prompt chunks.
    memory_s, compute_s : float
        Memory time and compute time at the rates that are reached.
    """

    weight_bytes: float
    kv_bytes: float
    linear_flops: float
    head_flops: float
    attention_flops: float
    memory_s: float
    compute_s: float

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)

    @property
    def seconds(self) -> float:
        """Duration of the step."""
        return max(self.memory_s, self.compute_s)

    @property
    def bound(self) -> Bound:
        """The limiting side."""
        return "memory" if self.memory_s >= self.compute_s else "compute"


@dataclass(frozen=True, slots=True)
class RooflineStepTime(StepTime):
    """The larger of memory time and compute time, on each of the GPUs that the model is split over.

    Memory time: the weights that a step reads and the KV of its batch (contexts of decodes, past and new tokens of
    prompt chunks), divided by the bandwidth that is reached. Compute time: 2 FLOPs per parameter and token, the output
    head for sampled rows, and causal attention of prompt chunks, divided by the FLOP/s that are reached. The attention
    FLOPs of decodes are left out, because reading their KV takes far longer. Communication, kernel launches and the
    host are not included; calibrated presets have them.

    Attributes
    ----------
    work : Work
        Bytes and FLOPs per GPU.
    bytes_per_s, flops_per_s : float
        Rates reached per GPU.
    layer_flops_per_s : float
        FLOP/s reached by the layers' matrices, whose number format can have a peak of its own.
    """

    work: Work
    bytes_per_s: float
    flops_per_s: float
    layer_flops_per_s: float

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)

    @classmethod
    def of(
        cls, model: Model, gpu: Gpu, tensor_parallel: int = 1, *, bandwidth_share: float, mfu: float
    ) -> RooflineStepTime:
        """Return the roofline of a model on `tensor_parallel` GPUs.

        Raises
        ------
        InputError
            If the heads cannot be divided over this many GPUs.
        """
        return cls(
            work=Work.of(model, tensor_parallel),
            bytes_per_s=gpu.bandwidth_bytes_per_s * bandwidth_share,
            flops_per_s=gpu.flops_per_s * mfu,
            layer_flops_per_s=gpu.flops_for(model.matrix_format) * mfu,
        )

    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step."""
        decode = self.work.decode_kv_bytes(batch.decode_seqs, batch.context_tokens)
        return max((self._other_bytes(batch) + decode) / self.bytes_per_s, self._compute_s(batch))

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the durations of `n` consecutive steps; only the KV bytes of decodes grow."""
        if n < 1 or not batch.decode_seqs or self.work.window_tokens:
            return [self.seconds(batch.later(i)) for i in range(n)]
        per_token, rate = self.work.kv_bytes_per_token, self.bytes_per_s
        other, compute_s = self._other_bytes(batch), self._compute_s(batch)
        if n > ARRAYS_PAY_ABOVE:
            seconds = (other + per_token * context_array(batch, n)) / rate
            seconds[seconds < compute_s] = compute_s
            longest: list[float] = seconds.tolist()
            return longest
        memory_s = [(other + per_token * context) / rate for context in contexts(batch, n)]
        if memory_s[0] >= compute_s:  # contexts only grow, so memory stays the limit
            return memory_s
        return [max(read_s, compute_s) for read_s in memory_s]

    def terms(self, batch: Batch) -> StepTerms:
        """Return bytes, FLOPs and durations of one step."""
        work = self.work
        kv_bytes = work.decode_kv_bytes(batch.decode_seqs, batch.context_tokens) + work.prefill_kv_bytes(batch)
        weight_bytes = work.weight_bytes(batch.decode_tokens + batch.prefill_tokens)
        return StepTerms(
            weight_bytes=weight_bytes,
            kv_bytes=kv_bytes,
            linear_flops=work.linear_flops_per_token * (batch.decode_tokens + batch.prefill_tokens),
            head_flops=work.head_flops_per_row * batch.sampled_rows,
            attention_flops=work.attention_flops(batch),
            memory_s=(weight_bytes + kv_bytes) / self.bytes_per_s,
            compute_s=self._compute_s(batch),
        )

    def explain(self, batch: Batch) -> list[Term]:
        """Return the terms of one step, for output."""
        terms = self.terms(batch)
        memory = terms.bound == "memory"
        layer_s = terms.linear_flops / self.layer_flops_per_s
        return [
            Term("weights", terms.weight_bytes / self.bytes_per_s, terms.weight_bytes, None, memory, "memory"),
            Term("keys and values", terms.kv_bytes / self.bytes_per_s, terms.kv_bytes, None, memory, "memory"),
            Term("layers' matrices", layer_s, None, terms.linear_flops, not memory, "compute"),
            Term("output head", terms.head_flops / self.flops_per_s, None, terms.head_flops, not memory, "compute"),
            Term(
                "attention of prompts",
                terms.attention_flops / self.flops_per_s,
                None,
                terms.attention_flops,
                not memory,
                "compute",
            ),
        ]

    def bound(self, batch: Batch) -> Bound:
        """Return the side that limits the step."""
        return self.terms(batch).bound

    def _other_bytes(self, batch: Batch) -> float:
        """Return the bytes that a step reads, without the KV of decodes."""
        if not batch.prefill:
            return self.work.weight_bytes(batch.decode_tokens)
        tokens = batch.decode_tokens + batch.prefill_tokens
        return self.work.weight_bytes(tokens) + self.work.prefill_kv_bytes(batch)

    def _compute_s(self, batch: Batch) -> float:
        """Return the compute time, which does not depend on the context of decodes."""
        work = self.work
        tokens, flops = batch.decode_tokens, work.head_flops_per_row * batch.sampled_rows
        if batch.prefill:
            tokens += batch.prefill_tokens
            flops += work.attention_flops(batch)
        return work.linear_flops_per_token * tokens / self.layer_flops_per_s + flops / self.flops_per_s
