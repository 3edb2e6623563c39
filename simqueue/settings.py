"""Base of all settings that a user writes down: frozen, strict, and with the nearest name for misspelt keys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from simqueue.errors import MOST_SHOWN, Problem, show
from simqueue.names import nearest, unknown

PROBLEM, UNKNOWN_KEY = "problem", "unknown_key"
"""Types of pydantic's errors whose text is a whole sentence of this package."""


class Settings(BaseModel):
    """A group of keys in a scenario file.

    Subclasses declare fields with ``Field(description=..., json_schema_extra={"unit": "s"})``; the
    reference of scenario keys is generated from these. Numbers are finite unless a field says otherwise.
    Validators raise `invalid`.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=False,
        defer_build=True,  # validators are built at first use: most commands need few of them
    )

    @classmethod
    def _has_pattern(cls, _key: str) -> bool:
        """Return whether a key without a field of its own is allowed."""
        return False

    @classmethod
    def _suggested(cls) -> Sequence[str]:
        """Return keys without a field of their own that are suggested instead of misspelt ones."""
        return ()

    @model_validator(mode="before")
    @classmethod
    def _reject_unknown_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = sorted(f.alias or n for n, f in cls.model_fields.items())
        strange = [str(key) for key in data if key not in known and not cls._has_pattern(str(key))]
        if strange:
            raise unknown_keys(strange, [*known, *cls._suggested()])
        return data


def _integer(value: Any) -> Any:
    """Return a float without a fraction as an int (YAML reads 8e9 as a float), anything else unchanged."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


Count = Annotated[int, BeforeValidator(_integer)]
"""An integer that can also be written in scientific notation."""


def invalid(text: str, *path: str | int, value: object = ...) -> ValueError:
    """Return the error that a validator raises.

    Parameters
    ----------
    text : str
        What is wrong and what is allowed.
    *path : str or int
        Keys from the validated value down to the one that is wrong; none if it is the validated value itself.
    value : object, optional
        What is there.
    """
    if path:
        return invalid_all([Problem(path, text, None if value is ... else show(value) or "")])
    return PydanticCustomError(PROBLEM, "{text}", {"text": text, "depth": 0})


def invalid_all(problems: Iterable[Problem]) -> ValueError:
    """Return the error that a validator raises about several keys below the validated value."""
    return ValidationError.from_exception_data("settings", [details_of(problem) for problem in problems])


def unknown_keys(keys: Sequence[str], known: Sequence[str]) -> ValueError:
    """Return the error that a validator raises about keys that do not exist; `known` are the valid ones."""
    return ValidationError.from_exception_data(
        "settings", [_unknown_key(key, known, looked_up=number < MOST_SHOWN) for number, key in enumerate(keys)]
    )


def _unknown_key(key: str, known: Sequence[str], *, looked_up: bool) -> InitErrorDetails:
    """Return the details of an unknown key; the nearest name is only looked up if they will be printed."""
    guess = next(iter(nearest(key, known)), None) if looked_up else None
    text = unknown("key", key, known) if looked_up else "unknown key"
    context = {"text": text, "key": key, "guess": guess}
    return InitErrorDetails(type=PydanticCustomError(UNKNOWN_KEY, "{text}", context), loc=(), input=None)


def problems_of(error: ValidationError) -> list[Problem]:
    """Return what a validation error says, with the paths as pydantic has them."""
    return [
        Problem(one["loc"], one["msg"], one.get("ctx", {}).get("value") or show(one["input"]) or "")
        for one in error.errors()
    ]


def details_of(problem: Problem) -> InitErrorDetails:
    """Return a problem as validators report it to pydantic."""
    # the text goes through a placeholder, because braces in a user's value would be read as one
    context = {"text": problem.text, "depth": len(problem.path), "value": problem.value}
    kind = PydanticCustomError(PROBLEM, "{text}", context)
    return InitErrorDetails(type=kind, loc=problem.path, input={} if problem.value is None else problem.value)
