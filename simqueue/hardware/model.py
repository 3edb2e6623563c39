"""Cost model of a transformer: bytes stored and read, FLOPs per token, KV bytes per token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from simqueue.errors import InputError
from simqueue.hardware.precision import BYTES, KVFormat, WeightFormat


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of a mixture-of-experts model.

    Attributes
    ----------
    layers : int
        Number of layers with experts.
    count, active : int
        Experts per such layer, and experts that one token is routed to.
    parameters : int
        Parameters of one expert in one layer.
    """

    layers: int
    count: int
    active: int
    parameters: int

    def distinct(self, tokens: int) -> float:
        """Return the expected number of experts of a layer that `tokens` tokens are routed to.

        ``count * (1 - (1 - active / count) ** tokens)``, with uniform, independent routing. For many tokens this tends
        to `count`, not to `active`.
        """
        return self.count * (1 - (1 - self.active / self.count) ** tokens)


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder-only transformer, dense or mixture-of-experts, with grouped-query or latent attention.

    Attributes
    ----------
    name : str
        Name in the library, or the name given inline.
    layers, heads, kv_heads, head_dim : int
        Shape of the attention. `head_dim` is the width of a head's queries and keys.
    parameters : int
        All stored parameters; tied embeddings are counted once.
    lookup_parameters : int
        Parameters of an embedding table that is only used for look-ups: it is stored, but steps do not read or multiply
        all of it. 0 if the table is tied to the output head, or if only the total is known.
    head_parameters : int
        Parameters of the output head, which is computed for sampled rows only; 0 if only the total is known.
    dtype_bytes : int
        Bytes per number of embeddings and output head, and of everything without a format of its own below.
    max_position : int or None
        Longest sequence that the model supports, in tokens; None: unknown.
    description : str
        One line of text.
    hidden : int or None
        Width of the residual stream, which all-reduces of tensor parallelism transfer; None if only the total is known.
    mlp_width : int or None
        Numbers between the matrices of an MLP per token: of the widest layer, over all experts that a token uses; None
        if only the total is known.
    value_dim : int or None
        Width of a head's values; None: `head_dim`.
    latent_dim : int or None
        Numbers that latent attention (MLA) stores per token and layer instead of keys and values; None: no MLA.
    window_layers, window_tokens : int
        Number of layers with a sliding window of `window_tokens` tokens; 0 if there are none.
    experts : Experts or None
        Routed experts; None for a dense model.
    weights : {"fp32", "bf16", "fp8", "fp4"} or None
        Number format of the layers' matrices; None: `dtype_bytes`.
    expert_weights : same or None
        Number format of the routed experts; None: that of the other matrices.
    kv_format : {"fp32", "bf16", "fp8"} or None
        Number format of the KV cache; None: `dtype_bytes`.
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
    mlp_width: int | None = None
    value_dim: int | None = None
    latent_dim: int | None = None
    window_layers: int = 0
    window_tokens: int = 0
    experts: Experts | None = None
    weights: WeightFormat | None = None
    expert_weights: WeightFormat | None = None
    kv_format: KVFormat | None = None

    def with_precision(
        self,
        weights: WeightFormat | None = None,
        kv: KVFormat | None = None,
        everything: Literal["fp32", "bf16"] | None = None,
    ) -> Model:
        """Return the model in other number formats (None: unchanged).

        `weights` is that of the layers' matrices; embeddings and output head have that of `everything`.
        """
        changed = self
        if everything is not None:
            changed = replace(changed, dtype_bytes=int(BYTES[everything]), weights=None, expert_weights=None)
        changed = changed if weights is None else replace(changed, weights=weights, expert_weights=None)
        return changed if kv is None else replace(changed, kv_format=kv)

    @property
    def expert_parameters(self) -> int:
        """Parameters of all routed experts."""
        return 0 if self.experts is None else self.experts.layers * self.experts.count * self.experts.parameters

    @property
    def layer_parameters(self) -> int:
        """Parameters of the layers without routed experts: every step reads them, every token uses them."""
        return self.parameters - self.lookup_parameters - self.head_parameters - self.expert_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses, including embeddings and output head."""
        if self.experts is None:
            return self.parameters
        active = self.experts.layers * self.experts.active * self.experts.parameters
        return self.parameters - self.expert_parameters + active

    @property
    def layer_bytes_per_parameter(self) -> float:
        """Bytes per parameter of the layers' matrices."""
        return self.dtype_bytes if self.weights is None else BYTES[self.weights]

    @property
    def expert_bytes_per_parameter(self) -> float:
        """Bytes per parameter of routed experts."""
        return self.layer_bytes_per_parameter if self.expert_weights is None else BYTES[self.expert_weights]

    @property
    def matrix_format(self) -> WeightFormat | None:
        """Number format of the matrices with most of the FLOPs (experts if there are any); None: `dtype_bytes`."""
        return self.expert_weights or self.weights

    @property
    def expert_format(self) -> WeightFormat:
        """Number format of the routed experts."""
        return self.matrix_format or ("fp32" if self.dtype_bytes == BYTES["fp32"] else "bf16")

    def without_experts(self) -> Model:
        """Return the part that every token uses: the model without its routed experts."""
        if self.experts is None:
            return self
        rest = self.parameters - self.expert_parameters
        return replace(self, parameters=rest, experts=None, expert_weights=None)

    @property
    def kv_number_bytes(self) -> float:
        """Bytes per number in the KV cache."""
        return self.dtype_bytes if self.kv_format is None else BYTES[self.kv_format]

    @property
    def weight_bytes(self) -> float:
        """Bytes of all stored weights, summed over all GPUs."""
        return self.lookup_parameters * self.dtype_bytes + self.read_bytes

    @property
    def read_bytes(self) -> float:
        """Bytes of weights read by a step that uses every expert, summed over all GPUs."""
        return self.dense_read_bytes + self.expert_parameters * self.expert_bytes_per_parameter

    @property
    def dense_read_bytes(self) -> float:
        """Bytes of weights that every step reads: all but look-up tables and routed experts."""
        return self.head_parameters * self.dtype_bytes + self.layer_parameters * self.layer_bytes_per_parameter

    @property
    def kv_numbers_per_layer(self) -> int:
        """Numbers stored per token and layer, summed over all KV heads."""
        if self.latent_dim is not None:
            return self.latent_dim
        return self.kv_heads * (self.head_dim + (self.value_dim or self.head_dim))

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of keys and values per token, summed over all layers and KV heads.

        Layers with a window count in full, as in engines with one block table for all layers.
        """
        return self.layers * self.kv_numbers_per_layer * self.kv_number_bytes

    @property
    def growing_kv_bytes_per_token(self) -> float:
        """KV bytes per token beyond the window: only layers without a window store it."""
        return (self.layers - self.window_layers) * self.kv_numbers_per_layer * self.kv_number_bytes

    @property
    def linear_flops_per_token(self) -> int:
        """FLOPs per token of all layers, without attention scores and output head: 2 per active parameter."""
        return 2 * (self.active_parameters - self.lookup_parameters - self.head_parameters)

    @property
    def head_flops_per_row(self) -> int:
        """FLOPs of the output head per sampled row."""
        return 2 * self.head_parameters

    @property
    def attention_flops_per_pair(self) -> int:
        """FLOPs per (query, key) pair: scores and weighted sum, summed over all layers and heads."""
        return self.layers * self.attention_flops_per_pair_and_layer

    @property
    def attention_flops_per_pair_and_layer(self) -> int:
        """FLOPs per (query, key) pair in one layer."""
        return 2 * self.heads * (self.head_dim + (self.value_dim or self.head_dim))

    def kv_bytes_per_token_per_gpu(self, tensor_parallel: int) -> float:
        """Return the KV bytes per token on each GPU.

        If there are fewer KV heads than GPUs, KV heads are replicated. The latent of MLA, which all heads share, is
        always replicated.

        Raises
        ------
        InputError
            If the heads cannot be divided evenly over the GPUs.
        """
        self.check_tensor_parallel(tensor_parallel)
        if self.latent_dim is not None:
            return self.kv_bytes_per_token
        heads_per_gpu = max(1, self.kv_heads // tensor_parallel)
        return self.kv_bytes_per_token * heads_per_gpu / self.kv_heads

    def check_tensor_parallel(self, tensor_parallel: int) -> None:
        """Raise an InputError unless the heads can be divided evenly over this many GPUs."""
        allowed = self.tensor_parallel_sizes()
        if tensor_parallel not in allowed:
            raise InputError(
                f"the {self.heads} heads and {self.kv_heads} KV heads of {self.name} cannot be divided over "
                f"{tensor_parallel} GPUs; allowed: {', '.join(map(str, allowed))}",
                "tensor_parallel",
            )

    def tensor_parallel_sizes(self) -> list[int]:
        """Return the allowed numbers of GPUs: query heads divide evenly, KV heads divide or are replicated."""
        return [
            n
            for n in range(1, self.heads + 1)
            if self.heads % n == 0 and (self.kv_heads % n == 0 or n % self.kv_heads == 0)
        ]


def attention_pairs(past: int, new: int) -> int:
    """Return the (query, key) pairs of causal attention for `new` tokens after `past` ones."""
    return new * past + new * (new + 1) // 2


def window_pairs(past: int, new: int, window: int) -> int:
    """Return the same if a token attends to at most `window` tokens, itself included."""
    within = min(new, max(0, window - past))
    return attention_pairs(past, within) + (new - within) * window
