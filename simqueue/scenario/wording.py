"""One of pydantic's errors in words: the path in the file, what is allowed there, and the nearest valid name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from simqueue.errors import KeyPath
from simqueue.names import hint, nearest
from simqueue.scenario.written import has, look_up
from simqueue.settings import PROBLEM, UNKNOWN_KEY

NO_TAG = "\0missing"
"""Stands in for a missing key that selects one of several kinds, so that the kinds can be listed."""

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
_NUMBERS = ("int_type", "float_type")
_BOUND = {
    "greater_than": (">", "gt"),
    "greater_than_equal": (">=", "ge"),
    "less_than": ("<", "lt"),
    "less_than_equal": ("<=", "le"),
}
_PYDANTIC_SUBJECT = re.compile(r"\b(Input|String|List|Tuple|Dictionary|Value) should")


@dataclass(frozen=True, slots=True)
class Finding:
    """One of pydantic's errors in words. The findings of one path become one `Problem`.

    Attributes
    ----------
    path : tuple of str or int
        Keys from the top of the file to the place.
    must : str or None
        What the value must be; several are joined with "or".
    text : str
        The sentence, if it is not of the form "must be".
    value : str
        The value as YAML writes it; empty if it is to be looked up.
    hint : str
        How to write the value instead.
    number : bool
        The value must be a number, so its bounds are added.
    wrong_type : bool
        This branch of a choice takes another type of value.
    unknown : bool
        The key itself does not exist.
    guess : tuple of str or int or None
        Path of the key that was probably meant by an unknown one.
    untagged : bool
        The key that selects one of several kinds is missing.
    """

    path: KeyPath
    must: str | None = None
    text: str = ""
    value: str = ""
    hint: str = ""
    number: bool = False
    wrong_type: bool = False
    unknown: bool = False
    guess: KeyPath | None = None
    untagged: bool = False


def put_in_words(details: ErrorDetails, data: Any) -> Finding:
    """Return one of pydantic's error details in terms of the keys in `data`."""
    kind = details["type"]
    if kind == PROBLEM:
        depth = details["ctx"]["depth"]  # keys that the validator has named, whether they exist or not
        outer = details["loc"][: len(details["loc"]) - depth]
        path = (*path_in_file(outer, data), *details["loc"][len(outer) :])
        return Finding(path, text=details["ctx"]["text"], value=details["ctx"].get("value") or "")
    path = path_in_file(details["loc"], data, keep_last=kind == "missing")
    if kind in _BOUND:
        return Finding(path, must=bound(details))
    if kind in _WRONG_TYPE:
        return _wrong_type(path, details)
    return _WORDS.get(kind, _other)(path, details, data)


def bound(details: ErrorDetails) -> str | None:
    """Return the bound that a number breaks, such as ``> 0``, or None if the error is about something else."""
    if details["type"] not in _BOUND:
        return None
    sign, name = _BOUND[details["type"]]
    return f"{sign} {details['ctx'][name]:g}"


def path_in_file(loc: KeyPath, data: Any, *, keep_last: bool = False) -> KeyPath:
    """Drop from pydantic's location the names of branches of a choice, which are not keys of the file."""
    path: KeyPath = ()
    place = data
    for depth, step in enumerate(loc):
        if has(place, step):
            place = place[step]
        elif not (keep_last and depth == len(loc) - 1):
            continue
        path = (*path, step)
    return path


def _unknown_key(path: KeyPath, details: ErrorDetails, _: Any) -> Finding:
    key, guess = details["ctx"]["key"], details["ctx"]["guess"]
    return Finding((*path, key), text=details["ctx"]["text"], unknown=True, guess=(*path, guess) if guess else None)


def _missing(path: KeyPath, _: ErrorDetails, __: Any) -> Finding:
    return Finding(path, text="this key is missing")


def _no_tag(path: KeyPath, details: ErrorDetails, _: Any) -> Finding:
    return Finding((*path, _tag_key(details)), untagged=True)


def _wrong_tag(path: KeyPath, details: ErrorDetails, data: Any) -> Finding:
    path = (*path, _tag_key(details))
    value, expected = look_up(data, path)[1], str(details["ctx"]["expected_tags"])
    if value == NO_TAG:
        others = [key for key in look_up(data, path[:-1])[1] if key != path[-1]]
        near = nearest(str(path[-1]), others)
        meant = f" (is '{near[0]}' a misspelling of it?)" if near else ""
        return Finding(path, text=f"this key is missing{meant}; it must be {_choice(None, expected)}")
    return Finding(path, must=_choice(value, expected))


def _tag_key(details: ErrorDetails) -> str:
    return str(details["ctx"]["discriminator"]).strip("'")


def _not_finite(path: KeyPath, _: ErrorDetails, __: Any) -> Finding:
    return Finding(path, must="a finite number", number=True)


def _no_choice(path: KeyPath, details: ErrorDetails, _: Any) -> Finding:
    return Finding(path, must=_choice(details["input"], str(details["ctx"]["expected"])))


def _too_short(path: KeyPath, details: ErrorDetails, _: Any) -> Finding:
    least = details["ctx"]["min_length"]
    return Finding(path, text=f"must have at least {least} {'entry' if least == 1 else 'entries'}")


def _too_long(path: KeyPath, details: ErrorDetails, _: Any) -> Finding:
    return Finding(path, text=f"can have up to {details['ctx']['max_length']:,} entries")


def _choice(value: Any, expected: str) -> str:
    names = [name.strip().strip("'") for name in expected.replace(" or ", ", ").split(",")]
    question = hint(value, names) if isinstance(value, str) and len(names) > 1 else ""
    listed = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{listed}; {question}" if question else listed


def _wrong_type(path: KeyPath, details: ErrorDetails) -> Finding:
    kind = details["type"]
    wanted = _WRONG_TYPE[kind]
    if details["loc"][-1:] == ("inline",):  # the branch of a choice between a name and a mapping
        wanted = f"a name or {wanted}"
    return Finding(path, must=wanted, hint=_hint(kind, details["input"]), number=kind in _NUMBERS, wrong_type=True)


def _hint(kind: str, value: Any) -> str:
    """Return how to write a value that only its form gives the wrong type."""
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return ", written without '.' and exponent"
    if kind in _NUMBERS and isinstance(value, str) and _reads_as_number(value):
        return ", written without quotes"
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return ", written in quotes"
    return ""


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _other(path: KeyPath, details: ErrorDetails, _: Any) -> Finding:
    """Keep pydantic's own sentence; `path` stands for its subject."""
    return Finding(path, text=_PYDANTIC_SUBJECT.sub("must", details["msg"]))


_WORDS: dict[str, Callable[[KeyPath, ErrorDetails, Any], Finding]] = {
    UNKNOWN_KEY: _unknown_key,
    "missing": _missing,
    "union_tag_not_found": _no_tag,
    "union_tag_invalid": _wrong_tag,
    "finite_number": _not_finite,
    "literal_error": _no_choice,
    "too_short": _too_short,
    "too_long": _too_long,
}
