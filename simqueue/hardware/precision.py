"""How numbers are stored: bytes of a weight and of a number in the KV cache, by the name of the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast

from pydantic import Field

from simqueue.errors import InputError
from simqueue.settings import Settings

WeightFormat = Literal["fp32", "bf16", "fp8", "fp4"]
KVFormat = Literal["fp32", "bf16", "fp8"]

BYTES: Final[Mapping[str, float]] = {"fp32": 4, "bf16": 2, "fp8": 1, "fp4": 0.53125}
"""Bytes a number. fp4 is MXFP4: 4 bits and, for each 32 numbers, a shared scale of 8 bits (OCP Microscaling Formats
v1.0). The scales of fp8 (one a tensor, a channel or a block of 128 x 128) are less than 0.1 % and left out."""


def known_format(name: str | None) -> WeightFormat | None:
    """Return a format by its name; None stays None.

    Raises
    ------
    InputError
        There is no such format.
    """
    if name is None or name in BYTES:
        return cast("WeightFormat | None", name)
    raise InputError(f"weights: unknown format '{name}'; known: {', '.join(BYTES)}")


class DtypeSettings(Settings):
    """``dtype: {weights: fp8, kv: fp8}``: a model stored in another format than its own."""

    weights: WeightFormat | None = Field(
        default=None, description="Format of the layers' matrices; embeddings and head keep theirs. Null: the model's."
    )
    kv: KVFormat | None = Field(default=None, description="Format of the KV cache. Null: the model's.")
