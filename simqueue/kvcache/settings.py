"""Scenario keys of the KV cache."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from simqueue.settings import Settings, invalid

MOST_BLOCKS = 10**12
"""Blocks of a pool. They are counted and not stored, so this is only where counts are certainly a mistake."""
MOST_BLOCK_TOKENS = 1_000_000
"""Tokens of a block; the blocks that decoding requests need are counted by position in a block."""


class KVCacheSettings(Settings):
    """The memory for keys and values, and its size."""

    layout: Literal["paged", "contiguous"] = Field(
        "paged",
        description="paged: blocks are allocated as the context grows; contiguous: memory for the whole request is "
        "reserved at admission",
    )
    reserve: Literal["request_max", "model_max"] = Field(
        "request_max",
        description="what contiguous reserves: prompt + output - 1 tokens of the request, or max_model_len tokens",
    )
    block_size: int = Field(
        16, ge=1, le=MOST_BLOCK_TOKENS, description="tokens per block", json_schema_extra={"unit": "tokens"}
    )
    blocks: int | Literal["auto"] = Field(
        "auto",
        description="usable blocks in the pool; auto: as many as fit into memory_share of the GPU's memory next to the "
        "weights and, with an engine, to the activations and other memory that it measures when it starts",
        json_schema_extra={"unit": "blocks"},
    )
    memory_share: float = Field(
        0.9,
        gt=0,
        le=1,
        description="share of the GPU's memory for weights and KV cache (with blocks: auto)",
    )
    watermark: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the pool that admissions leave free while other requests run",
    )
    prefix_caching: bool | None = Field(
        None,
        description="whether later requests reuse full blocks of earlier requests with the same prefix; null: the "
        "default of the engine's version, or false without an engine",
    )

    @model_validator(mode="after")
    def _prefixes_need_pages(self) -> KVCacheSettings:
        if self.prefix_caching and self.layout != "paged":
            raise invalid("needs layout: paged", "prefix_caching", value=True)
        return self

    @model_validator(mode="after")
    def _blocks_is_positive(self) -> KVCacheSettings:
        if self.blocks != "auto" and not 1 <= self.blocks <= MOST_BLOCKS:
            raise invalid("must be a whole number from 1 to 1e12, or auto", "blocks", value=self.blocks)
        return self
