"""How a model is written down: a geometry, or a parameter count with the shape of the attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from pydantic import Field, model_validator

from simqueue.hardware.precision import KVFormat, WeightFormat
from simqueue.settings import Count, Settings, invalid

_GEOMETRY = ("hidden", "intermediate", "vocab")
_GEOMETRY_OPTIONS = (
    *("tied_embeddings", "qk_norm", "sandwich_norms", "qkv_bias", "output_bias", "mlp_bias", "attention_sinks"),
    *("experts", "experts_per_token", "expert_intermediate", "shared_intermediate", "dense_layers", "router_bias"),
    *("q_lora_rank", "kv_lora_rank", "rope_dim", "expert_weights"),
)
_TOGETHER = (
    ("experts", "experts_per_token", "expert_intermediate"),
    ("kv_lora_rank", "rope_dim"),
    ("window_layers", "window_tokens"),
)
_MOST = 10**15  # keeps every derived number far inside the exact integers of a float's range


def _switch(description: str) -> Any:
    return Field(default=None, description=f"{description} Default: false.")


def _width(description: str, *, least: int = 1, most: int = 10**7) -> Any:
    return Field(default=None, ge=least, le=most, description=description)


class ModelSettings(Settings):
    """A model written inline.

    Either the geometry (`hidden`, `intermediate`, `vocab`), from which parameters are counted; or
    `parameters`, every one of which is then taken to be read in each step and multiplied for each token.
    """

    name: str = Field(default="inline", min_length=1, description="Name shown in results.")
    layers: Count = Field(ge=1, le=10_000, description="Transformer layers.")
    heads: Count = Field(ge=1, le=10_000, description="Query heads.")
    kv_heads: Count = Field(ge=1, le=10_000, description="Key and value heads; fewer than heads with GQA.")
    head_dim: Count = Field(
        ge=1, le=10_000, description="Width of a head's queries and keys; not always hidden / heads."
    )
    value_dim: Count | None = _width("Width of a head's values, where it differs from head_dim.", most=10_000)
    hidden: Count | None = _width("Width of the residual stream.")
    intermediate: Count | None = _width("Width inside the gated MLP (three matrices) of layers without experts.")
    vocab: Count | None = _width("Rows of the embedding table.", most=10**8)
    tied_embeddings: bool | None = _switch("The output head is the embedding table.")
    qk_norm: bool | None = _switch("Queries and keys are normalised per head (Qwen3).")
    sandwich_norms: bool | None = _switch("Norms stand before and behind attention and MLP (Gemma 3).")
    qkv_bias: bool | None = _switch("Query, key and value projections have biases (Qwen2).")
    output_bias: bool | None = _switch("The output projection of the attention has a bias.")
    mlp_bias: bool | None = _switch("The matrices of MLP and experts have biases.")
    attention_sinks: bool | None = _switch("Each head has one learned sink logit (gpt-oss).")
    experts: Count | None = _width("Routed experts in each layer that has them.", most=100_000)
    experts_per_token: Count | None = _width("Routed experts that one token goes through.", most=100_000)
    expert_intermediate: Count | None = _width("Width inside one routed expert.")
    shared_intermediate: Count | None = _width("Width inside the shared experts together. Default: 0.", least=0)
    dense_layers: Count | None = _width("First layers, which have a plain MLP and no experts. Default: 0.", least=0)
    router_bias: bool | None = _switch("The router has a bias, or a correction for each expert.")
    q_lora_rank: Count | None = _width("Latent attention (MLA): rank of the queries' compression, if any.")
    kv_lora_rank: Count | None = _width("Latent attention (MLA): numbers kept for keys and values together.")
    rope_dim: Count | None = _width("Latent attention (MLA): width of the shared key with positions; part of head_dim.")
    window_layers: Count | None = _width("Layers with a sliding window. Default: 0.", least=0, most=10_000)
    window_tokens: Count | None = Field(
        default=None,
        ge=1,
        le=10**9,
        description="Latest tokens, itself included, that a token attends to in those layers.",
        json_schema_extra={"unit": "tokens"},
    )
    parameters: Count | None = Field(
        default=None, ge=1, le=_MOST, description="All parameters, instead of hidden, intermediate and vocab."
    )
    dtype_bytes: Count = Field(
        default=2,
        ge=1,
        le=8,
        description="Bytes of one weight and of one KV number, unless said otherwise; 2 is bf16.",
        json_schema_extra={"unit": "B"},
    )
    weights: WeightFormat | None = Field(
        default=None, description="Format of the layers' matrices; embeddings and head keep dtype_bytes."
    )
    expert_weights: WeightFormat | None = Field(
        default=None, description="Format of the routed experts, where it differs from the other matrices."
    )
    kv_format: KVFormat | None = Field(default=None, description="Format of the KV cache. Default: dtype_bytes.")
    max_position: Count | None = Field(
        default=None,
        ge=1,
        description="Longest sequence the model was made for.",
        json_schema_extra={"unit": "tokens"},
    )

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [key for key in _GEOMETRY + _GEOMETRY_OPTIONS if getattr(self, key) is not None]
        missing = [key for key in _GEOMETRY if getattr(self, key) is None]
        if self.parameters is not None and given:
            raise invalid(f"parameters stands alone: leave out {', '.join(given)}")
        if self.parameters is None and missing:
            raise invalid(f"give parameters, or the geometry: missing {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.heads % self.kv_heads:
            raise invalid(f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")
        for text in self._contradictions():
            raise invalid(text)
        return self

    def _contradictions(self) -> Iterator[str]:
        for keys in _TOGETHER:
            given = [key for key in keys if getattr(self, key)]
            if given and len(given) < len(keys):
                yield f"{', '.join(keys)} belong together; given: {', '.join(given)}"
        if (self.experts_per_token or 0) > (self.experts or 0):
            yield f"experts_per_token ({self.experts_per_token}) must be at most experts ({self.experts})"
        for key in ("window_layers", "dense_layers"):
            if (getattr(self, key) or 0) > self.layers:
                yield f"{key} ({getattr(self, key)}) must be at most layers ({self.layers})"
        if (self.rope_dim or 0) >= self.head_dim:
            yield f"rope_dim ({self.rope_dim}) must be less than head_dim ({self.head_dim}), which contains it"
