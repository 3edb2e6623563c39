"""One validation failure in words: the place in the file, what is allowed there, and the nearest valid name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from simqueue.names import nearest, unknown
from simqueue.scenario.yamlfile import KeyPath

LOCATED = "located"
"""Type of the errors that say their path in the file themselves."""

NO_TAG = "\0missing"
"""Stands in for a missing key that tells which kind of thing is meant, so that the kinds can be listed."""

_NOT_BUILT = (
    *("replicas", "router"),
    "swap_bytes_per_s",
)
"""Keys that people may know from the plans of this project, and that this version does not have."""

_LONGEST_SHOWN = 60
_WRONG_TYPE = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
}
_BOUND = {
    "greater_than": (">", "gt"),
    "greater_than_equal": (">=", "ge"),
    "less_than": ("<", "lt"),
    "less_than_equal": ("<=", "le"),
}
_PYDANTIC_SUBJECT = re.compile(r"\b(Input|String|List|Tuple|Dictionary|Value) should")
_ABOUT_A_KEY = re.compile(r"(\w+) = [^:]*: (.+)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes
    ----------
    path : tuple of str or int
        Keys from the top of the file to the place.
    must : str or None
        What the value must be, so that the branches of a choice can be joined with "or".
    text : str
        The complaint where it is not of the form "must be".
    hint : str
        How to write it instead.
    number : bool
        What it must be is a number, whose bounds are worth telling.
    wrong_type : bool
        The value is of another kind than this branch takes.
    unknown : bool
        The key itself is wrong.
    guess : tuple of str or int or None
        Path of the key that was probably meant by an unknown one.
    untagged : bool
        The key is missing that tells which kind of thing is meant.
    """

    path: KeyPath
    must: str | None = None
    text: str = ""
    hint: str = ""
    number: bool = False
    wrong_type: bool = False
    unknown: bool = False
    guess: KeyPath | None = None
    untagged: bool = False


def put_in_words(details: ErrorDetails, data: Any) -> Problem:
    """Return what one of pydantic's error details means for the person who wrote `data`."""
    kind = details["type"]
    if kind == LOCATED:
        return Problem(details["loc"], text=details["ctx"]["text"])
    path = path_in_file(details["loc"], data, keep_last=kind == "missing")
    if kind in _BOUND:
        return Problem(path, must=bound(details))
    if kind in _WRONG_TYPE:
        return _wrong_type(path, details)
    return _WORDS.get(kind, _sentence)(path, details, data)


def bound(details: ErrorDetails) -> str | None:
    """Return the bound that a number breaks, such as ``> 0``, or None if the error is about something else."""
    if details["type"] not in _BOUND:
        return None
    sign, name = _BOUND[details["type"]]
    return f"{sign} {details['ctx'][name]:g}"


def path_in_file(loc: KeyPath, data: Any, *, keep_last: bool = False) -> KeyPath:
    """Drop from pydantic's location what is no key of the file: the names of a choice's branches."""
    path: KeyPath = ()
    place = data
    for depth, step in enumerate(loc):
        if _has(place, step):
            place = place[step]
        elif not (keep_last and depth == len(loc) - 1):
            continue
        path = (*path, step)
    return path


def look_up(data: Any, path: KeyPath) -> tuple[bool, Any]:
    """Return whether there is a value at `path`, and the value."""
    place = data
    for step in path:
        if not _has(place, step):
            return False, None
        place = place[step]
    return True, place


def is_given(given: Any, path: KeyPath) -> bool:
    """Whether plain data have something at this path, in mappings all the way."""
    for step in path:
        if not isinstance(given, dict) or step not in given:
            return False
        given = given[step]
    return True


def show(value: Any) -> str | None:
    """Return a scalar as YAML writes it, or None for what is too long for one line."""
    if isinstance(value, dict | list):
        return None
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _has(place: Any, step: str | int) -> bool:
    if isinstance(place, dict):
        return step in place
    return isinstance(place, list) and isinstance(step, int) and step < len(place)


def _unknown_key(path: KeyPath, details: ErrorDetails, _: Any) -> Problem:
    key, allowed = str(details["ctx"]["key"]), str(details["ctx"]["allowed"]).split(", ")
    where = (*path, key)
    if key in _NOT_BUILT:
        return Problem(where, text="unknown key; this version of simqueue does not have it", unknown=True)
    guess = nearest(key, allowed)
    return Problem(where, text=unknown("key", key, allowed), unknown=True, guess=(*path, guess) if guess else None)


def _missing(path: KeyPath, _: ErrorDetails, __: Any) -> Problem:
    return Problem(path, text="this key is missing")


def _no_tag(path: KeyPath, details: ErrorDetails, _: Any) -> Problem:
    return Problem((*path, _tag_key(details)), untagged=True)


def _wrong_tag(path: KeyPath, details: ErrorDetails, data: Any) -> Problem:
    path = (*path, _tag_key(details))
    value, expected = look_up(data, path)[1], str(details["ctx"]["expected_tags"])
    if value == NO_TAG:
        others = [key for key in look_up(data, path[:-1])[1] if key != path[-1]]
        near = nearest(str(path[-1]), others)
        meant = f" (is '{near}' meant for it?)" if near else ""
        return Problem(path, text=f"this key is missing{meant}; it must be {_choice(None, expected)}")
    return Problem(path, must=_choice(value, expected))


def _tag_key(details: ErrorDetails) -> str:
    return str(details["ctx"]["discriminator"]).strip("'")


def _not_finite(path: KeyPath, _: ErrorDetails, __: Any) -> Problem:
    return Problem(path, must="a finite number", number=True)


def _no_choice(path: KeyPath, details: ErrorDetails, _: Any) -> Problem:
    return Problem(path, must=_choice(details["input"], str(details["ctx"]["expected"])))


def _too_short(path: KeyPath, details: ErrorDetails, _: Any) -> Problem:
    least = details["ctx"]["min_length"]
    return Problem(path, text=f"must have at least {least} {'entry' if least == 1 else 'entries'}")


def _choice(value: Any, expected: str) -> str:
    names = [name.strip().strip("'") for name in expected.replace(" or ", ", ").split(",")]
    guess = nearest(value, names) if isinstance(value, str) else None
    listed = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{listed}; did you mean '{guess}'?" if guess and len(names) > 1 else listed


def _wrong_type(path: KeyPath, details: ErrorDetails) -> Problem:
    kind, value = details["type"], details["input"]
    wanted, hint = _WRONG_TYPE[kind], ""
    if details["loc"][-1:] == ("inline",):  # the branch of a choice between a name and a mapping
        wanted = f"a name or {wanted}"
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        hint = ", written without '.' and exponent"
    number = kind in ("int_type", "float_type")
    if number and isinstance(value, str) and _reads_as_number(value):
        hint = ", written without quotes"
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        hint = ", written in quotes"
    return Problem(path, must=wanted, hint=hint, number=number, wrong_type=True)


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sentence(path: KeyPath, details: ErrorDetails, data: Any) -> Problem:
    """Keep a validator's own sentence; where it starts with ``key = value:``, it is about that key."""
    text = " ".join(details["msg"].removeprefix("Value error, ").split())
    about = _ABOUT_A_KEY.fullmatch(text)
    if about and look_up(data, (*path, about[1]))[0]:
        return Problem((*path, about[1]), text=about[2])
    return Problem(path, text=_PYDANTIC_SUBJECT.sub("must", text))


_WORDS: dict[str, Callable[[KeyPath, ErrorDetails, Any], Problem]] = {
    "unknown_key": _unknown_key,
    "missing": _missing,
    "union_tag_not_found": _no_tag,
    "union_tag_invalid": _wrong_tag,
    "finite_number": _not_finite,
    "literal_error": _no_choice,
    "too_short": _too_short,
}
