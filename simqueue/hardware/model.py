"""A model as a cost: what it stores, what a step reads of it, what a token computes and keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simqueue.errors import InputError
from simqueue.hardware.precision import BYTES, KVFormat, WeightFormat


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of a mixture-of-experts model.

    Attributes
    ----------
    layers : int
        Layers that have experts.
    count, active : int
        Experts in such a layer, and how many of them one token goes through.
    parameters : int
        Of one expert in one layer.
    """

    layers: int
    count: int
    active: int
    parameters: int

    def distinct(self, tokens: int) -> float:
        """Return how many experts of a layer `tokens` tokens are expected to reach under even, independent routing.

        ``count * (1 - (1 - active / count) ** tokens)``: it tends to all of them, not to the active ones.
        """
        return self.count * (1 - (1 - self.active / self.count) ** tokens)


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder-only transformer: dense or with experts, with grouped-query or latent attention.

    Attributes
    ----------
    name : str
        Its name in the library, or the one given inline.
    layers, heads, kv_heads, head_dim : int
        Shape of the attention.
    parameters : int
        All stored parameters; tied embeddings count once.
    lookup_parameters : int
        Those of an embedding table that is only looked up: stored, never read as a whole, never multiplied.
        0 where the table is tied to the head, or where only a total is known.
    head_parameters : int
        Those of the output head, which multiplies sampled rows only; 0 where only a total is known.
    dtype_bytes : int
        Bytes of one number that is not quantised: embeddings, head, and all else unless said otherwise below.
    max_position : int or None
        Longest sequence the model was made for, in tokens; None where nobody said.
    description : str
        One line for people.
    hidden : int or None
        Width of the residual stream, which tensor parallelism sends around; None where only a total is known.
    value_dim : int or None
        Width of one head's values where it differs from `head_dim`, the width of its queries and keys.
    latent_dim : int or None
        Numbers that latent attention (MLA) keeps for a token in a layer, in place of keys and values.
    window_layers, window_tokens : int
        Layers that attend to the latest `window_tokens` tokens only; 0 without windows.
    experts : Experts or None
    weights : {"fp32", "bf16", "fp8", "fp4"} or None
        Format of the layers' matrices; None: `dtype_bytes`.
    expert_weights : same or None
        Format of the routed experts where it differs from that of the other matrices.
    kv_format : {"fp32", "bf16", "fp8"} or None
        Format of the KV cache; None: `dtype_bytes`.
    """

    name: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    parameters: int
    lookup_parameters: int = 0
    head_parameters: int = 0
    dtype_bytes: int = 2
    max_position: int | None = None
    description: str = ""
    hidden: int | None = None
    value_dim: int | None = None
    latent_dim: int | None = None
    window_layers: int = 0
    window_tokens: int = 0
    experts: Experts | None = None
    weights: WeightFormat | None = None
    expert_weights: WeightFormat | None = None
    kv_format: KVFormat | None = None

    def with_precision(self, weights: WeightFormat | None = None, kv: KVFormat | None = None) -> Model:
        """Return the same model stored in another format; embeddings and head keep theirs. None changes nothing."""
        changed = self if weights is None else replace(self, weights=weights, expert_weights=None)
        return changed if kv is None else replace(changed, kv_format=kv)

    @property
    def expert_parameters(self) -> int:
        """Parameters of all routed experts."""
        return 0 if self.experts is None else self.experts.layers * self.experts.count * self.experts.parameters

    @property
    def layer_parameters(self) -> int:
        """Parameters of the layers without routed experts: what every step reads and every token multiplies."""
        return self.parameters - self.lookup_parameters - self.head_parameters - self.expert_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token goes through, embeddings and head included."""
        if self.experts is None:
            return self.parameters
        active = self.experts.layers * self.experts.active * self.experts.parameters
        return self.parameters - self.expert_parameters + active

    @property
    def layer_bytes_per_parameter(self) -> float:
        """Bytes of one parameter of the layers' matrices."""
        return self.dtype_bytes if self.weights is None else BYTES[self.weights]

    @property
    def expert_bytes_per_parameter(self) -> float:
        """Bytes of one parameter of a routed expert."""
        return self.layer_bytes_per_parameter if self.expert_weights is None else BYTES[self.expert_weights]

    @property
    def matrix_format(self) -> WeightFormat | None:
        """Format of the matrices that most FLOPs of a token go through; None: `dtype_bytes`."""
        return self.expert_weights or self.weights

    @property
    def kv_number_bytes(self) -> float:
        """Bytes of one number in the KV cache."""
        return self.dtype_bytes if self.kv_format is None else BYTES[self.kv_format]

    @property
    def weight_bytes(self) -> float:
        """Bytes that the weights take in memory, all GPUs together."""
        return self.lookup_parameters * self.dtype_bytes + self.read_bytes

    @property
    def read_bytes(self) -> float:
        """Bytes of weights that a step reads which reaches every expert, all GPUs together."""
        return self.dense_read_bytes + self.expert_parameters * self.expert_bytes_per_parameter

    @property
    def dense_read_bytes(self) -> float:
        """Bytes of weights that one step reads, whatever its batch: all but tables only looked up and experts."""
        return self.head_parameters * self.dtype_bytes + self.layer_parameters * self.layer_bytes_per_parameter

    @property
    def kv_numbers_per_layer(self) -> int:
        """Numbers that one token leaves behind in one layer, over all KV heads."""
        if self.latent_dim is not None:
            return self.latent_dim
        return self.kv_heads * (self.head_dim + (self.value_dim or self.head_dim))

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of keys and values that one token leaves behind, over all layers and KV heads.

        Layers with a window count in full, as in engines that keep one block table for all layers.
        """
        return self.layers * self.kv_numbers_per_layer * self.kv_number_bytes

    @property
    def growing_kv_bytes_per_token(self) -> float:
        """Bytes that a token beyond the window adds: those of layers without one."""
        return (self.layers - self.window_layers) * self.kv_numbers_per_layer * self.kv_number_bytes

    @property
    def window_kv_bytes(self) -> float:
        """Bytes that layers with a window hold of one request at most."""
        return self.window_layers * self.window_tokens * self.kv_numbers_per_layer * self.kv_number_bytes

    @property
    def linear_flops_per_token(self) -> int:
        """FLOPs of one token through all layers, without attention scores and head: 2 an active parameter."""
        return 2 * (self.active_parameters - self.lookup_parameters - self.head_parameters)

    @property
    def head_flops_per_row(self) -> int:
        """FLOPs of the output head for one row whose next token is sampled."""
        return 2 * self.head_parameters

    @property
    def attention_flops_per_pair(self) -> int:
        """FLOPs of one query attending to one token: scores and weighted sum, over all layers and heads."""
        return self.layers * self.attention_flops_per_pair_and_layer

    @property
    def attention_flops_per_pair_and_layer(self) -> int:
        """The same in one layer."""
        return 2 * self.heads * (self.head_dim + (self.value_dim or self.head_dim))

    def prefill_attention_flops(self, past: int, new: int) -> int:
        """Return the FLOPs of causal attention for `new` prompt tokens behind `past` cached ones.

        Without windows ``4 * layers * heads * head_dim * (new * past + new * (new + 1) / 2)``: each new token
        attends to all past ones, to the new ones before it, and to itself. A layer with a window stops at it.
        """
        full = (self.layers - self.window_layers) * attention_pairs(past, new)
        near = self.window_layers * window_pairs(past, new, self.window_tokens) if self.window_layers else 0
        return self.attention_flops_per_pair_and_layer * (full + near)

    def kv_bytes_per_token_per_gpu(self, tensor_parallel: int) -> float:
        """Return the KV bytes of one token on each GPU.

        KV heads fewer than GPUs are replicated; so is the latent of MLA, which belongs to all heads together.

        Raises
        ------
        InputError
            The heads cannot be shared out evenly.
        """
        self.check_tensor_parallel(tensor_parallel)
        if self.latent_dim is not None:
            return self.kv_bytes_per_token
        heads_per_gpu = max(1, self.kv_heads // tensor_parallel)
        return self.kv_bytes_per_token * heads_per_gpu / self.kv_heads

    def check_tensor_parallel(self, tensor_parallel: int) -> None:
        """Raise an InputError unless the heads can be shared out over so many GPUs."""
        allowed = self.tensor_parallel_sizes()
        if tensor_parallel not in allowed:
            raise InputError(
                f"{tensor_parallel} does not share out the {self.heads} heads and {self.kv_heads} KV heads of "
                f"{self.name}; allowed: {', '.join(map(str, allowed))}",
                "tensor_parallel",
            )

    def tensor_parallel_sizes(self) -> list[int]:
        """Return the numbers of GPUs over which query heads divide and KV heads divide or are replicated."""
        return [
            n
            for n in range(1, self.heads + 1)
            if self.heads % n == 0 and (self.kv_heads % n == 0 or n % self.kv_heads == 0)
        ]


def attention_pairs(past: int, new: int) -> int:
    """Return how many (query, key) pairs causal attention forms for `new` tokens behind `past` ones."""
    return new * past + new * (new + 1) // 2


def window_pairs(past: int, new: int, window: int) -> int:
    """Return the same where a token attends to at most `window` tokens, itself included."""
    within = min(new, max(0, window - past))
    return attention_pairs(past, within) + (new - within) * window
