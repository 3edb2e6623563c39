"""The routers a scenario can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args, get_origin

from simqueue.errors import InputError
from simqueue.names import PLAIN_RULE, is_plain
from simqueue.registered import is_same
from simqueue.routing.base import Router

ROUTERS: dict[str, type[Router]] = {}
"""Kind in the scenario file -> router class."""

R = TypeVar("R", bound=type[Router])


def router(kind: str) -> Callable[[R], R]:
    """Register the decorated `Router` class under `kind`, as ``router: {kind: ...}`` in a scenario.

    Raises
    ------
    InputError
        If the name is not valid, another class has it, or what is decorated is not a complete `Router` class.
    """
    if not isinstance(kind, str):
        raise InputError(f"router: {kind!r} must be a name, such as @router('my-router')")
    if not is_plain(kind):
        raise InputError(f"router {kind!r}: {PLAIN_RULE}")

    def register(cls: R) -> R:
        if not (isinstance(cls, type) and issubclass(cls, Router)):
            raise InputError(f"router '{kind}': {cls!r} must be a class derived from Router")
        missing = [name for name in ("Settings", "summary") if not hasattr(cls, name)]
        if cls.rank is Router.rank:
            missing.append("rank")
        if missing:
            raise InputError(f"router {cls.__name__}: must define {', '.join(missing)}")
        other = ROUTERS.get(kind)
        if other is not None and not is_same(cls, other):
            raise InputError(f"router '{kind}' is already registered by {other.__module__}.{other.__qualname__}")
        ROUTERS[kind] = cls
        return cls

    return register


def router_rows() -> list[dict[str, str]]:
    """Return one row per router, for ``simqueue list routers``."""
    return [
        {
            "router": kind,
            "versions": ", ".join(versions(cls)),
            "what it does": cls.summary,
            "its keys": ", ".join(field.alias or key for key, field in cls.Settings.model_fields.items()),
            "checked against": cls.checked,
        }
        for kind, cls in sorted(ROUTERS.items())
    ]


def versions(cls: type[Router]) -> list[str]:
    """Return the versions that the key ``version`` of a router can have; empty if it has no such key."""
    field = cls.Settings.model_fields.get("version")
    return [] if field is None else [str(version) for version in _choices(field.annotation)]


def _choices(annotation: Any) -> list[Any]:
    """Return the values of a `Literal`, also inside a union."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for part in get_args(annotation) for value in _choices(part)]
