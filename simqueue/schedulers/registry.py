"""The schedulers a scenario can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from simqueue.errors import InputError
from simqueue.schedulers.base import Policy

SCHEDULERS: dict[str, type[Policy]] = {}
"""Name in the scenario file -> policy class."""

P = TypeVar("P", bound=type[Policy])


def scheduler(name: str) -> Callable[[P], P]:
    """Register the decorated `Policy` class under `name`, as ``scheduler: name`` in a scenario.

    Raises
    ------
    InputError
        If another class already has that name.
    """

    def register(policy: P) -> P:
        other = SCHEDULERS.get(name)
        if other is not None and other.__qualname__ != policy.__qualname__:
            raise InputError(f"scheduler '{name}' is already registered by {other.__qualname__}")
        SCHEDULERS[name] = policy
        return policy

    return register
