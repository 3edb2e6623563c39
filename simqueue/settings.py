"""Base of everything a user may write down: frozen, strict, and helpful about misspelt keys."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from simqueue.names import unknown


class Settings(BaseModel):
    """A group of keys in a scenario file.

    Subclasses declare fields with ``Field(description=..., json_schema_extra={"unit": "s"})``; the
    reference of scenario keys is generated from these. Numbers are finite unless a field says otherwise.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=False,
        defer_build=True,  # validators are made when first used: most commands need few of them
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        valid = [f.alias or n for n, f in cls.model_fields.items()]
        for key in data:
            if key not in valid:
                raise PydanticCustomError(
                    "unknown_key",
                    "{text}",
                    {"text": unknown("key", key, sorted(valid)), "key": str(key), "allowed": ", ".join(sorted(valid))},
                )
        return data


def _integer(value: Any) -> Any:
    """Return a float without a fraction as an int (YAML reads 8e9 as a float), anything else unchanged."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


Count = Annotated[int, BeforeValidator(_integer)]
"""An integer that can also be written in scientific notation."""
