"""What a step moves and computes, on one of the GPUs that share a model: the counts under every roofline."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.hardware import Model
from simqueue.hardware.model import attention_pairs, window_pairs
from simqueue.steptime.base import Batch


@dataclass(frozen=True, slots=True)
class Work:
    """Bytes and FLOPs of one GPU. What is asked for a batch is a function of its sums.

    Attributes
    ----------
    dense_weight_bytes : float
        Weights that every step reads.
    linear_flops_per_token, head_flops_per_row : float
        Layers' matrices for each token, output head for each sampled row.
    kv_bytes_per_token : float
        Of the layers without a window; read for each token that a decode attends to.
    attention_flops_per_pair : float
        Of the layers without a window; for each pair of a prompt's token and one it attends to.
    expert_weight_bytes, experts, experts_per_token : float, int, int
        One routed expert in all its layers; how many there are in a layer, and on one token's way.
    window_tokens, window_kv_bytes_per_token, window_flops_per_pair : int, float, float
        The same two for layers that attend to the latest `window_tokens` only.
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

    @classmethod
    def of(cls, model: Model, tensor_parallel: int = 1) -> Work:
        """Return the work of a model on each of `tensor_parallel` GPUs.

        Raises
        ------
        InputError
            The heads cannot be shared out over so many GPUs.
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
        """Return the weights read by a step of `tokens` tokens: experts count as far as tokens reach them."""
        if not self.experts:
            return self.dense_weight_bytes
        distinct = self.experts * (1 - (1 - self.experts_per_token / self.experts) ** tokens)
        return self.dense_weight_bytes + self.expert_weight_bytes * distinct

    def decode_kv_bytes(self, decode_seqs: int, context_tokens: int) -> float:
        """Return the keys and values that decodes read, given their summed context.

        With windows each context is cut at the window; the sum is cut as if all were equally long.
        """
        kv_bytes = self.kv_bytes_per_token * context_tokens
        if not self.window_tokens:
            return kv_bytes
        return kv_bytes + self.window_kv_bytes_per_token * min(context_tokens, decode_seqs * self.window_tokens)

    def prefill_kv_bytes(self, batch: Batch) -> float:
        """Return the keys and values that prompt pieces read or write, cached ones included."""
        kv_bytes = self.kv_bytes_per_token * sum([past + new for past, new in batch.prefill])
        if not self.window_tokens:
            return kv_bytes
        near = sum([min(past, self.window_tokens) + new for past, new in batch.prefill])
        return kv_bytes + self.window_kv_bytes_per_token * near

    def attention_flops(self, batch: Batch) -> float:
        """Return the FLOPs of causal attention of all prompt pieces."""
        flops = self.attention_flops_per_pair * sum([attention_pairs(past, new) for past, new in batch.prefill])
        if not self.window_tokens:
            return flops
        near = sum([window_pairs(past, new, self.window_tokens) for past, new in batch.prefill])
        return flops + self.window_flops_per_pair * near
