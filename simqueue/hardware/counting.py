"""Counts the parameters of a model geometry, matrix by matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simqueue.hardware.model import Experts

if TYPE_CHECKING:
    from simqueue.hardware.model_settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Parts:
    """Parameters of a model.

    Attributes
    ----------
    total : int
        All stored parameters.
    lookup : int
        Parameters of tables of which steps read single rows: learned positions, and an embedding table that is not
        shared with the output head.
    head : int
        Parameters of the output head.
    experts : Experts or None
        The routed experts.
    """

    total: int
    lookup: int
    head: int
    experts: Experts | None


def counted(shape: ModelSettings) -> Parts:
    """Count the parameters of a geometry. Precondition: `hidden`, `intermediate` and `vocab` are not None."""
    hidden = shape.hidden or 0
    table = (shape.vocab or 0) * hidden
    lookup = (0 if shape.tied_embeddings else table) + (shape.positions or 0) * hidden
    head = table + ((shape.vocab or 0) if shape.head_bias else 0)
    experts = _experts(shape, hidden)
    expert_layers = experts.layers if experts else 0
    dense = (shape.layers - expert_layers) * _mlp(shape, hidden, shape.intermediate or 0)
    layers = shape.layers * (_attention(shape, hidden) + _norms(shape, hidden)) + dense
    if experts is not None:
        router = hidden * experts.count + (experts.count if shape.router_bias else 0)
        shared = _mlp(shape, hidden, shape.shared_intermediate) if shape.shared_intermediate else 0
        gate = hidden if shape.shared_gate else 0
        layers += experts.layers * (experts.count * experts.parameters + router + shared + gate)
    return Parts(layers + _norm(shape, hidden) + lookup + head, lookup, head, experts)


def _experts(shape: ModelSettings, hidden: int) -> Experts | None:
    if shape.experts is None or shape.experts_per_token is None:
        return None
    one = _mlp(shape, hidden, shape.expert_intermediate or 0)
    return Experts(shape.layers - (shape.dense_layers or 0), shape.experts, shape.experts_per_token, one)


def _mlp(shape: ModelSettings, hidden: int, intermediate: int) -> int:
    """Gate, up and down projections; without a gate two of them."""
    matrices = shape.mlp_matrices or 3
    return matrices * hidden * intermediate + ((matrices - 1) * intermediate + hidden if shape.mlp_bias else 0)


def _norm(shape: ModelSettings, hidden: int) -> int:
    return (2 if shape.norm_bias else 1) * hidden


def _norms(shape: ModelSettings, hidden: int) -> int:
    count = shape.layer_norms or (4 if shape.sandwich_norms else 2)
    wide = (shape.heads + shape.kv_heads) * shape.head_dim if shape.wide_qk_norm else 0
    return count * _norm(shape, hidden) + (2 * shape.head_dim if shape.qk_norm else 0) + wide


def _attention(shape: ModelSettings, hidden: int) -> int:
    if shape.kv_lora_rank is not None:
        return _latent_attention(shape, hidden, shape.kv_lora_rank, shape.rope_dim or 0)
    value_dim = shape.value_dim or shape.head_dim
    queries = shape.heads * shape.head_dim
    keys_and_values = shape.kv_heads * (shape.head_dim + value_dim)
    count = hidden * (queries + keys_and_values + shape.heads * value_dim)
    count += queries + keys_and_values if shape.qkv_bias else 0
    count += hidden if shape.output_bias else 0
    return count + (shape.heads if shape.attention_sinks else 0)


def _latent_attention(shape: ModelSettings, hidden: int, kv_rank: int, rope_dim: int) -> int:
    """Projections of queries (through a latent if there is one), of keys and values, and the norm of each latent."""
    value_dim = shape.value_dim or shape.head_dim
    queries = shape.heads * shape.head_dim
    rank = shape.q_lora_rank
    query_count = hidden * queries if rank is None else hidden * rank + rank + rank * queries
    down = hidden * (kv_rank + rope_dim) + kv_rank
    up = kv_rank * shape.heads * (shape.head_dim - rope_dim + value_dim)
    return query_count + down + up + shape.heads * value_dim * hidden
