"""Bytes and FLOPs of a step on one of the GPUs that a model is split over; all rooflines use these counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simqueue.hardware import Model
from simqueue.hardware.model import attention_pairs, window_pairs
from simqueue.steptime.base import Batch, made_again


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the duration of a step. Bytes and FLOPs are per GPU; None: the term has none.

    Attributes
    ----------
    name : str
    seconds : float
    bytes_moved, flops : float or None
    counts : bool
        Whether the term is part of the duration; the smaller operand of a maximum is not.
    bound : str
        The limiting resource: memory, compute, link, latency or host.
    """

    name: str
    seconds: float
    bytes_moved: float | None = None
    flops: float | None = None
    counts: bool = True
    bound: str = ""

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)


@dataclass(frozen=True, slots=True)
class Work:
    """Bytes and FLOPs per GPU, as functions of the sums of a batch.

    Attributes
    ----------
    dense_weight_bytes : float
        Bytes of weights that every step reads.
    linear_flops_per_token, head_flops_per_row : float
        FLOPs of the layers' matrices per token, and of the output head per sampled row.
    kv_bytes_per_token : float
        KV bytes of the layers without a window, per token that a decode attends to.
    attention_flops_per_pair : float
        Attention FLOPs of the layers without a window, per (query, key) pair of a prompt.
    expert_weight_bytes, experts, experts_per_token : float, int, int
        Bytes of one routed expert, summed over its layers; routed experts per layer; routed experts per token.
    window_tokens, window_kv_bytes_per_token, window_flops_per_pair : int, float, float
        Window of the layers with one, and the two counts for these layers.
    """

    dense_weight_bytes: float
    linear_flops_per_token: float
    head_flops_per_row: float
    kv_bytes_per_token: float
    attention_flops_per_pair: float
    expert_weight_bytes: float = 0.0
    experts: int = 0
    experts_per_token: int = 0
    window_tokens: int = 0
    window_kv_bytes_per_token: float = 0.0
    window_flops_per_pair: float = 0.0

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)

    @classmethod
    def of(cls, model: Model, tensor_parallel: int = 1) -> Work:
        """Return the work of a model on each of `tensor_parallel` GPUs.

        Raises
        ------
        InputError
            If the heads cannot be divided over this many GPUs.
        """
        kv_bytes = model.kv_bytes_per_token_per_gpu(tensor_parallel)
        flops_per_pair = model.attention_flops_per_pair / tensor_parallel
        near = model.window_layers / model.layers
        experts = model.experts
        one_expert = 0.0 if experts is None else model.expert_bytes_per_parameter * experts.layers * experts.parameters
        return cls(
            dense_weight_bytes=model.dense_read_bytes / tensor_parallel,
            linear_flops_per_token=model.linear_flops_per_token / tensor_parallel,
            head_flops_per_row=model.head_flops_per_row / tensor_parallel,
            kv_bytes_per_token=float(kv_bytes) if not near else kv_bytes * (1 - near),
            attention_flops_per_pair=flops_per_pair if not near else flops_per_pair * (1 - near),
            expert_weight_bytes=one_expert / tensor_parallel,
            experts=0 if experts is None else experts.count,
            experts_per_token=0 if experts is None else experts.active,
            window_tokens=model.window_tokens,
            window_kv_bytes_per_token=kv_bytes * near,
            window_flops_per_pair=flops_per_pair * near,
        )

    def weight_bytes(self, tokens: int) -> float:
        """Return the bytes of weights read by a step of `tokens` tokens; experts by their expected number."""
        if not self.experts:
            return self.dense_weight_bytes
        distinct = self.experts * (1 - (1 - self.experts_per_token / self.experts) ** tokens)
        return self.dense_weight_bytes + self.expert_weight_bytes * distinct

    def decode_kv_bytes(self, decode_seqs: int, context_tokens: int) -> float:
        """Return the bytes of keys and values that decodes read, given their summed context.

        In layers with a window, the context is limited to the window, as if all contexts were equally long.
        """
        kv_bytes = self.kv_bytes_per_token * context_tokens
        if not self.window_tokens:
            return kv_bytes
        return kv_bytes + self.window_kv_bytes_per_token * min(context_tokens, decode_seqs * self.window_tokens)

    def prefill_kv_bytes(self, batch: Batch) -> float:
        """Return the bytes of keys and values that prompt chunks read or write, including cached tokens."""
        kv_bytes = self.kv_bytes_per_token * sum([past + new for past, new in batch.prefill])
        if not self.window_tokens:
            return kv_bytes
        near = sum([min(past, self.window_tokens) + new for past, new in batch.prefill])
        return kv_bytes + self.window_kv_bytes_per_token * near

    def attention_flops(self, batch: Batch) -> float:
        """Return the FLOPs of causal attention of all prompt chunks."""
        flops = self.attention_flops_per_pair * sum([attention_pairs(past, new) for past, new in batch.prefill])
        if not self.window_tokens:
            return flops
        near = sum([window_pairs(past, new, self.window_tokens) for past, new in batch.prefill])
        return flops + self.window_flops_per_pair * near
