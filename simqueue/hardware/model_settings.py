"""Keys of a model: a geometry, or a parameter count with the shape of the attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from simqueue.hardware.precision import KVFormat, WeightFormat
from simqueue.settings import Count, Settings, invalid

_GEOMETRY = ("hidden", "intermediate", "vocab")
_GEOMETRY_OPTIONS = (
    *("tied_embeddings", "qk_norm", "sandwich_norms", "qkv_bias", "output_bias", "mlp_bias", "attention_sinks"),
    *("experts", "experts_per_token", "expert_intermediate", "shared_intermediate", "dense_layers", "router_bias"),
    *("q_lora_rank", "kv_lora_rank", "rope_dim", "expert_weights"),
    *("mlp_matrices", "layer_norms", "norm_bias", "wide_qk_norm", "positions", "head_bias", "shared_gate"),
)
_TOGETHER = (
    ("experts", "experts_per_token", "expert_intermediate"),
    ("kv_lora_rank", "rope_dim"),
    ("window_layers", "window_tokens"),
)
_PART_OF = {"experts_per_token": "experts", "window_layers": "layers", "dense_layers": "layers"}
"""Each of these numbers is at most the other; null counts as 0."""
_MOST = 10**15  # keeps every derived number within the range in which floats are exact integers


def _switch(description: str) -> Any:
    return Field(default=None, description=f"{description}; default: false")


def _width(description: str, *, least: int = 1, most: int = 10**7) -> Any:
    return Field(default=None, ge=least, le=most, description=description)


class ModelSettings(Settings):
    """A model written inline.

    Either the geometry (`hidden`, `intermediate`, `vocab`), from which parameters are counted; or `parameters`, all of
    which are then assumed to be read in each step and used by each token.
    """

    name: str = Field(default="inline", min_length=1, description="name shown in results")
    layers: Count = Field(ge=1, le=10_000, description="transformer layers")
    heads: Count = Field(ge=1, le=10_000, description="query heads")
    kv_heads: Count = Field(ge=1, le=10_000, description="key and value heads; fewer than heads with GQA")
    head_dim: Count = Field(
        ge=1, le=10_000, description="width of a head's queries and keys; not always hidden / heads"
    )
    value_dim: Count | None = _width("width of a head's values; default: head_dim", most=10_000)
    hidden: Count | None = _width("width of the residual stream")
    intermediate: Count | None = _width("width inside the MLP of layers without experts")
    vocab: Count | None = _width("rows of the embedding table", most=10**8)
    tied_embeddings: bool | None = _switch("whether the output head is the embedding table")
    qk_norm: bool | None = _switch("whether queries and keys are normalised per head (Qwen3)")
    wide_qk_norm: bool | None = _switch("whether all queries are normalised together, and all keys (OLMo 2)")
    sandwich_norms: bool | None = _switch("whether there are norms before and after attention and MLP (Gemma 3)")
    layer_norms: Count | None = _width("norms per layer; default: 2, or 4 with sandwich_norms", most=8)
    norm_bias: bool | None = _switch("whether norms have biases (LayerNorm)")
    qkv_bias: bool | None = _switch("whether the query, key and value projections have biases (Qwen2)")
    output_bias: bool | None = _switch("whether the output projection of the attention has a bias")
    mlp_bias: bool | None = _switch("whether the matrices of MLP and experts have biases")
    mlp_matrices: Literal[2, 3] | None = Field(
        default=None, description="matrices of an MLP or expert: 2 without a gate; default: 3"
    )
    positions: Count | None = _width("rows of a table of learned positions; default: 0", least=0, most=10**8)
    head_bias: bool | None = _switch("whether the output head has a bias")
    attention_sinks: bool | None = _switch("whether each head has a learned sink logit (gpt-oss)")
    experts: Count | None = _width("routed experts per layer with experts", most=100_000)
    experts_per_token: Count | None = _width("routed experts per token", most=100_000)
    expert_intermediate: Count | None = _width("width inside one routed expert")
    shared_intermediate: Count | None = _width("width inside all shared experts together; default: 0", least=0)
    shared_gate: bool | None = _switch("whether the shared experts have a gate (Qwen2 MoE)")
    dense_layers: Count | None = _width("number of layers that have an MLP instead of experts; default: 0", least=0)
    router_bias: bool | None = _switch("whether the router has a bias, or a correction per expert")
    q_lora_rank: Count | None = _width("latent attention (MLA): rank of the compressed queries; null: not compressed")
    kv_lora_rank: Count | None = _width("latent attention (MLA): numbers stored for keys and values together")
    rope_dim: Count | None = _width("latent attention (MLA): width of the shared key with positions; part of head_dim")
    window_layers: Count | None = _width("layers with a sliding window; default: 0", least=0, most=10_000)
    window_tokens: Count | None = Field(
        default=None,
        ge=1,
        le=10**9,
        description="maximum number of tokens, itself included, that a token attends to in those layers",
        json_schema_extra={"unit": "tokens"},
    )
    parameters: Count | None = Field(
        default=None, ge=1, le=_MOST, description="all parameters, instead of hidden, intermediate and vocab"
    )
    dtype_bytes: Count = Field(
        default=2,
        ge=1,
        le=8,
        description="bytes per weight and per KV number without a format of its own; 2 is bf16",
        json_schema_extra={"unit": "B"},
    )
    weights: WeightFormat | None = Field(
        default=None, description="format of the layers' matrices; embeddings and output head keep dtype_bytes"
    )
    expert_weights: WeightFormat | None = Field(
        default=None, description="format of the routed experts; default: that of the other matrices"
    )
    kv_format: KVFormat | None = Field(default=None, description="format of the KV cache; default: dtype_bytes")
    max_position: Count | None = Field(
        default=None,
        ge=1,
        description="longest sequence that the model supports",
        json_schema_extra={"unit": "tokens"},
    )

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [key for key in _GEOMETRY + _GEOMETRY_OPTIONS if getattr(self, key) is not None]
        missing = [key for key in _GEOMETRY if getattr(self, key) is None]
        if self.parameters is not None and given:
            raise invalid(f"parameters excludes the geometry: leave out {', '.join(given)}")
        if self.parameters is None and missing:
            raise invalid(f"give parameters, or the geometry: missing {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.heads % self.kv_heads:
            raise invalid(f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")
        for text in (*self._incomplete(), *self._contradictions()):
            raise invalid(text)
        return self

    def _incomplete(self) -> Iterator[str]:
        for keys in _TOGETHER:
            given = [key for key in keys if getattr(self, key)]
            if given and len(given) < len(keys):
                yield f"{', '.join(keys)} must be given together; given: {', '.join(given)}"

    def _contradictions(self) -> Iterator[str]:
        for part, whole in _PART_OF.items():
            number, most = getattr(self, part), getattr(self, whole)
            if (number or 0) > (most or 0):
                yield f"{part} ({number}) must be at most {whole} ({most})"
        if (self.rope_dim or 0) >= self.head_dim:
            yield f"rope_dim ({self.rope_dim}) must be less than head_dim ({self.head_dim}), which contains it"
