"""How a model is written down: a dense geometry, or a parameter count with the shape of the attention."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from simqueue.hardware.facts import Count
from simqueue.hardware.model import Model
from simqueue.settings import Settings

_GEOMETRY = ("hidden", "intermediate", "vocab")
_GEOMETRY_OPTIONS = ("tied_embeddings", "qk_norm")
_MOST = 10**15  # keeps every derived number far inside the exact integers of a float's range


class ModelSettings(Settings):
    """A model written inline.

    Either the geometry (`hidden`, `intermediate`, `vocab`), from which parameters are counted; or
    `parameters`, every one of which is then taken to be read in each step and multiplied for each token.
    """

    name: str = Field(default="inline", min_length=1, description="Name shown in results.")
    layers: Count = Field(ge=1, le=10_000, description="Transformer layers.")
    heads: Count = Field(ge=1, le=10_000, description="Query heads.")
    kv_heads: Count = Field(ge=1, le=10_000, description="Key and value heads; fewer than heads with GQA.")
    head_dim: Count = Field(ge=1, le=10_000, description="Width of one head; not always hidden / heads.")
    hidden: Count | None = Field(default=None, ge=1, le=10**7, description="Width of the residual stream.")
    intermediate: Count | None = Field(
        default=None, ge=1, le=10**7, description="Width inside the gated MLP (three matrices)."
    )
    vocab: Count | None = Field(default=None, ge=1, le=10**8, description="Rows of the embedding table.")
    tied_embeddings: bool | None = Field(
        default=None, description="The output head is the embedding table. Default: false."
    )
    qk_norm: bool | None = Field(
        default=None, description="Queries and keys are normalised per head (Qwen3). Default: false."
    )
    parameters: Count | None = Field(
        default=None, ge=1, le=_MOST, description="All parameters, instead of hidden, intermediate and vocab."
    )
    dtype_bytes: Count = Field(
        default=2,
        ge=1,
        le=8,
        description="Bytes of one weight and of one KV number; 2 is bf16.",
        json_schema_extra={"unit": "B"},
    )
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
            raise PydanticCustomError(
                "two_forms", "parameters stands alone: leave out {keys}", {"keys": ", ".join(given)}
            )
        if self.parameters is None and missing:
            raise PydanticCustomError(
                "no_form", "give parameters, or the geometry: missing {keys}", {"keys": ", ".join(missing)}
            )
        return self

    @model_validator(mode="after")
    def _grouped(self) -> Self:
        if self.heads % self.kv_heads:
            raise PydanticCustomError(
                "heads",
                "heads ({heads}) must be a multiple of kv_heads ({kv_heads})",
                {"heads": self.heads, "kv_heads": self.kv_heads},
            )
        return self

    def to_model(self, description: str = "") -> Model:
        """Return the model these keys describe."""
        shape = (self.layers, self.heads, self.kv_heads, self.head_dim)
        counts = self._counted() if self.parameters is None else (self.parameters, 0, 0)
        return Model(self.name, *shape, *counts, self.dtype_bytes, self.max_position, description)

    def _counted(self) -> tuple[int, int, int]:
        """Count all parameters, those of a table only looked up, and those of the head."""
        hidden, intermediate, vocab = self.hidden or 0, self.intermediate or 0, self.vocab or 0
        attention = 2 * hidden * self.head_dim * (self.heads + self.kv_heads)
        norms = 2 * hidden + (2 * self.head_dim if self.qk_norm else 0)
        layer = attention + 3 * hidden * intermediate + norms
        table = vocab * hidden
        lookup = 0 if self.tied_embeddings else table
        return self.layers * layer + hidden + lookup + table, lookup, table
