"""Scenario keys of the KV cache."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from simqueue.settings import Settings, invalid


class KVCacheSettings(Settings):
    """Where context lives and how much of it there is."""

    layout: Literal["paged", "contiguous"] = Field(
        "paged",
        description="paged: blocks are taken as the context grows; contiguous: all that a request may need is "
        "reserved when it is admitted",
    )
    reserve: Literal["request_max", "model_max"] = Field(
        "request_max",
        description="what a contiguous layout reserves: prompt + output - 1 tokens of the request, or max_model_len",
    )
    block_size: int = Field(16, ge=1, description="tokens a block holds", json_schema_extra={"unit": "tokens"})
    blocks: int | Literal["auto"] = Field(
        "auto",
        description="usable blocks in the pool; auto: what the GPU's reported memory leaves beside the weights",
        json_schema_extra={"unit": "blocks"},
    )
    memory_share: float = Field(
        0.9,
        gt=0,
        le=1,
        description="share of the GPU's reported memory that weights and KV cache may use (with blocks: auto)",
    )
    watermark: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the pool that must stay free when a request is admitted while others run",
    )
    prefix_caching: bool | None = Field(
        None,
        description="whether full blocks are found again by later requests with the same tokens; null: as the "
        "engine's version has it, else no",
    )
    preemption: Literal["recompute"] = Field(
        "recompute",
        description="what happens to a request that loses its blocks: its context is computed again",
    )

    @model_validator(mode="after")
    def _prefixes_need_pages(self) -> KVCacheSettings:
        if self.prefix_caching and self.layout != "paged":
            raise invalid("goes with layout: paged only", "prefix_caching", value=True)
        return self

    @model_validator(mode="after")
    def _blocks_is_positive(self) -> KVCacheSettings:
        if self.blocks != "auto" and self.blocks < 1:
            raise invalid("must be a whole number > 0, or auto", "blocks", value=self.blocks)
        return self
