"""Recorded decisions of routers: which program walks through which file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from simqueue.conformance import dynamo, dynamo_replay, http_routers, litellm
from simqueue.errors import InputError
from simqueue.names import unknown

NEEDED = ("router", "version", "case")
"""Keys that every file has."""

Walker = Callable[[Mapping[str, Any]], Iterator[str]]
"""Yields the differences of a recording, each in one line, in the order of its steps."""

WALKERS: Mapping[str, Walker] = {
    "sglang-router": http_routers.differences,
    "vllm-router": http_routers.differences,
    "dynamo-selection": dynamo.differences,
    "dynamo-replay": dynamo_replay.differences,
    "litellm": litellm.differences,
}
"""By what a file calls its ``router``."""


def first_difference(recorded: Mapping[str, Any]) -> str | None:
    """Return the first difference between a recording of a router and our decisions in one line, or None.

    Raises
    ------
    InputError
        If the file is not a recording of a known router.
    """
    walker = WALKERS.get(str(recorded["router"]))
    if walker is None:
        raise InputError(unknown("router", recorded["router"], WALKERS))
    try:
        return next(walker(recorded), None)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"not a recording of {recorded['router']}: {error!r}") from error
