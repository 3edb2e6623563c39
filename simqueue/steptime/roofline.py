"""The roofline: a step takes as long as reading memory or computing, whichever is longer."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import numpy as np
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from simqueue.hardware import Gpu, Model
from simqueue.hardware.facts import names_in, read_facts, unknown_name
from simqueue.hardware.model import attention_pairs
from simqueue.settings import Settings
from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.folding import ARRAYS_PAY_ABOVE, context_array, contexts

Bound = Literal["memory", "compute"]

_PRESETS = files("simqueue.steptime") / "presets"


def preset_names() -> list[str]:
    """Return the names of the presets that come with the package, sorted."""
    return names_in(_PRESETS)


def preset_rows() -> list[dict[str, str | float]]:
    """Return one row a preset for a table: its name, what it is, its values."""
    presets = [(name, read_facts(_PRESETS, name, "preset")) for name in preset_names()]
    return [{"name": name, "description": facts.description, **facts.values} for name, facts in presets]


class RooflineSettings(Settings):
    """``step_time: {kind: roofline, preset: ideal}``; a share that is given replaces the preset's."""

    kind: Literal["roofline"] = "roofline"
    preset: str = Field(default="ideal", description="A name from `simqueue list presets`.")
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
        if preset not in preset_names():
            line = unknown_name("preset", preset, preset_names())
            raise PydanticCustomError("unknown_preset", "{line}", {"line": line})
        return preset

    def shares(self) -> tuple[float, float]:
        """Return the shares of peak bandwidth and of peak FLOP/s: those given, else the preset's."""
        values = read_facts(_PRESETS, self.preset, "preset").values
        return (
            values["bandwidth_share"] if self.bandwidth_share is None else self.bandwidth_share,
            values["mfu"] if self.mfu is None else self.mfu,
        )

    def resolved(self) -> RooflineSettings:
        """Return the same settings with every share filled in."""
        bandwidth_share, mfu = self.shares()
        return RooflineSettings(preset=self.preset, bandwidth_share=bandwidth_share, mfu=mfu)


@dataclass(frozen=True, slots=True)
class StepTerms:
    """What one step moves and computes, and how long each takes. Bytes and FLOPs are those of one GPU.

    Attributes
    ----------
    weight_bytes, kv_bytes : float
        Read from memory: weights once a step, keys and values of every token attended to.
    linear_flops, head_flops, attention_flops : float
        Layers' matrices for every token, output head for sampled rows, causal attention of prompt pieces.
    memory_s, compute_s : float
        Time of each side at its reached rate.
    """

    weight_bytes: float
    kv_bytes: float
    linear_flops: float
    head_flops: float
    attention_flops: float
    memory_s: float
    compute_s: float

    @property
    def seconds(self) -> float:
        """How long the step takes."""
        return max(self.memory_s, self.compute_s)

    @property
    def bound(self) -> Bound:
        """Which side decides."""
        return "memory" if self.memory_s >= self.compute_s else "compute"


@dataclass(frozen=True, slots=True)
class RooflineStepTime(StepTime):
    """The larger of memory time and compute time, on each of the GPUs that share the model.

    Memory: weights that a step reads, and the KV of the batch (context of the decodes; past and new tokens
    of each prompt piece), over the bandwidth reached. Compute: 2 FLOPs a parameter for each token, the
    output head for sampled rows, and causal attention of prompt pieces, over the rate reached. Attention
    FLOPs of decodes are left out: reading their KV takes far longer than the few FLOPs done with it.
    Communication, launches and the host cost nothing here, nor do moved blocks: those belong to calibrated
    presets and to the link that moves them.

    Attributes
    ----------
    weight_bytes, kv_bytes_per_token : float
        On one GPU.
    linear_flops_per_token, head_flops_per_row, attention_flops_per_pair : float
        On one GPU.
    bytes_per_s, flops_per_s : float
        Rates reached by one GPU.
    """

    weight_bytes: float
    kv_bytes_per_token: float
    linear_flops_per_token: float
    head_flops_per_row: float
    attention_flops_per_pair: float
    bytes_per_s: float
    flops_per_s: float

    @classmethod
    def of(
        cls, model: Model, gpu: Gpu, tensor_parallel: int = 1, *, bandwidth_share: float, mfu: float
    ) -> RooflineStepTime:
        """Return the roofline of a model on `tensor_parallel` GPUs.

        Raises
        ------
        InputError
            The heads cannot be shared out over so many GPUs.
        """
        return cls(
            weight_bytes=model.read_bytes / tensor_parallel,
            kv_bytes_per_token=float(model.kv_bytes_per_token_per_gpu(tensor_parallel)),
            linear_flops_per_token=model.linear_flops_per_token / tensor_parallel,
            head_flops_per_row=model.head_flops_per_row / tensor_parallel,
            attention_flops_per_pair=model.attention_flops_per_pair / tensor_parallel,
            bytes_per_s=gpu.bandwidth_bytes_per_s * bandwidth_share,
            flops_per_s=gpu.flops_per_s * mfu,
        )

    def seconds(self, batch: Batch) -> float:
        """Return how long one step takes."""
        tokens = batch.context_tokens + _prefill_kv_tokens(batch)
        memory_s = (self.weight_bytes + self.kv_bytes_per_token * tokens) / self.bytes_per_s
        compute_s = self._compute_s(batch)
        return max(memory_s, compute_s)

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the durations of `n` steps in a row; only the KV read grows."""
        if n < 1 or not batch.decode_seqs:
            return [self.seconds(batch)] * n
        weights, per_token, rate = self.weight_bytes, self.kv_bytes_per_token, self.bytes_per_s
        prefill, compute_s = _prefill_kv_tokens(batch), self._compute_s(batch)
        if n > ARRAYS_PAY_ABOVE:
            memory = (weights + per_token * (context_array(batch, n) + prefill)) / rate
            longest: list[float] = np.maximum(memory, compute_s).tolist()
            return longest
        memory_s = [(weights + per_token * (context + prefill)) / rate for context in contexts(batch, n)]
        if memory_s[0] >= compute_s:  # contexts only grow, so memory decides to the end
            return memory_s
        return [max(seconds, compute_s) for seconds in memory_s]

    def terms(self, batch: Batch) -> StepTerms:
        """Return what one step moves and computes, and how long each takes; `seconds` is the longer."""
        kv_bytes = self.kv_bytes_per_token * (batch.context_tokens + _prefill_kv_tokens(batch))
        return StepTerms(
            weight_bytes=self.weight_bytes,
            kv_bytes=kv_bytes,
            linear_flops=self.linear_flops_per_token * (batch.decode_tokens + batch.prefill_tokens),
            head_flops=self.head_flops_per_row * batch.sampled_rows,
            attention_flops=self.attention_flops_per_pair * _prefill_pairs(batch),
            memory_s=(self.weight_bytes + kv_bytes) / self.bytes_per_s,
            compute_s=self._compute_s(batch),
        )

    def bound(self, batch: Batch) -> Bound:
        """Return which side decides how long the step takes."""
        return self.terms(batch).bound

    def _compute_s(self, batch: Batch) -> float:
        """Return the compute time; it does not depend on the context of the decodes."""
        flops = self.linear_flops_per_token * batch.decode_tokens + self.head_flops_per_row * batch.sampled_rows
        if batch.prefill:
            flops += self.linear_flops_per_token * batch.prefill_tokens
            flops += self.attention_flops_per_pair * _prefill_pairs(batch)
        return flops / self.flops_per_s


def _prefill_kv_tokens(batch: Batch) -> int:
    """Return the tokens whose KV the prompt pieces read or write, past ones included."""
    return sum([past + new for past, new in batch.prefill]) if batch.prefill else 0


def _prefill_pairs(batch: Batch) -> int:
    """Return the (query, key) pairs of all prompt pieces."""
    return sum(attention_pairs(past, new) for past, new in batch.prefill)
