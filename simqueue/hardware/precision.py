"""Number formats of weights and KV cache, and their bytes per number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast

from pydantic import Field

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.settings import Settings

WeightFormat = Literal["fp32", "bf16", "fp8", "fp4"]
KVFormat = Literal["fp32", "bf16", "fp8"]

BYTES: Final[Mapping[str, float]] = {"fp32": 4, "bf16": 2, "fp8": 1, "fp4": 0.53125}
"""Bytes per number. fp4 is MXFP4: 4 bits, plus a shared 8-bit scale per 32 numbers (OCP Microscaling Formats v1.0). The
scales of fp8 (one per tensor, per channel or per block of 128 x 128) add less than 0.1 % and are left out."""


def known_format(name: str | None) -> WeightFormat | None:
    """Return the format with this name; None for None.

    Raises
    ------
    InputError
        If the format does not exist.
    """
    if name is None or name in BYTES:
        return cast("WeightFormat | None", name)
    raise InputError(unknown("format", name, BYTES), "weights")


class DtypeSettings(Settings):
    """``dtype: {weights: fp8, kv: fp8}``: number formats that override the model's own."""

    all: Literal["fp32", "bf16"] | None = Field(
        default=None,
        description="format of all weights, with embeddings and output head, and of a KV cache without a format of its "
        "own; null: the model's, or that in which an engine serves it",
    )
    weights: WeightFormat | None = Field(
        default=None,
        description="format of the layers' matrices; embeddings and output head keep theirs; null: that of all",
    )
    kv: KVFormat | None = Field(default=None, description="format of the KV cache; null: the model's")
