"""Base of everything a user may write down: frozen, strict, and helpful about misspelt keys."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError


def nearest(name: str, valid: list[str]) -> str | None:
    """Return the valid name closest to `name`, or None where nothing is close."""
    close = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    return close[0] if close else None


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
                guess = nearest(str(key), valid)
                hint = f"did you mean '{guess}'? " if guess else ""
                raise PydanticCustomError(
                    "unknown_key",
                    "unknown key '{key}': {hint}allowed here: {allowed}",
                    {"key": str(key), "hint": hint, "allowed": ", ".join(sorted(valid))},
                )
        return data
