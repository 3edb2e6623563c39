"""What Python code gives for a scenario as the plain data that a file would hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from simqueue.datafiles.limits import MOST_DEPTH
from simqueue.errors import InputError
from simqueue.settings import Settings


def plain(value: Any, depth: int = 0) -> Any:
    """Return a copy as plain data, with the keys that were given for each model.

    Raises
    ------
    InputError
        If mappings and lists are nested too deeply, for example in themselves.
    """
    if depth > MOST_DEPTH:
        raise InputError(f"the scenario: nested too deeply; up to {MOST_DEPTH} levels of lists and mappings are read")
    inner_depth = depth + 1
    if isinstance(value, Settings):
        written = {
            field.alias or key: getattr(value, key)
            for key, field in type(value).model_fields.items()
            if key in value.model_fields_set or _has_one_value(field.annotation)
        }
        # a key with one possible value selects the branch of a choice
        return plain({**written, **(value.model_extra or {})}, inner_depth)
    if isinstance(value, Mapping):
        return {key: plain(inner, inner_depth) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, inner_depth) for inner in value]
    return python_value(value)


def python_value(value: Any) -> Any:
    """Return a number or an array of numpy as Python has it, anything else unchanged; numpy itself is not needed."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return value


def _has_one_value(annotation: Any) -> bool:
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1
