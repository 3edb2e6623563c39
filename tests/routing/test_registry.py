"""Registering routers: names that are taken, and classes that could not work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.routing import ROUTERS, Ranking, Router, View, router
from simqueue.routing.plain import NoKeys
from simqueue.settings import Settings


class RoundRobin(Router):
    """A class with the name of one of the package."""

    Settings: ClassVar[type[Settings]] = NoKeys
    summary: ClassVar[str] = "always the first"

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the first one."""
        return Ranking({replicas[0].number: 1.0}, "first")


class Nothing(Router):
    """Defines nothing."""


@pytest.mark.parametrize(
    ("kind", "cls", "said"),
    [
        (
            "round_robin",
            RoundRobin,
            r"router 'round_robin' is already registered by simqueue\.routing\.plain\.RoundRobin",
        ),
        ("mine", Nothing, "router Nothing: must define Settings, summary, rank"),
        ("mine", object, "router 'mine': <class 'object'> must be a class derived from Router"),
        ("my router", RoundRobin, "router 'my router': must be letters, digits, '_' and '-'"),
        (RoundRobin, RoundRobin, r"router: <class .*RoundRobin'> must be a name, such as @router\('my-router'\)"),
    ],
)
def test_what_cannot_be_registered(kind: str, cls: type[Router], said: str) -> None:
    """The line says what is missing, or which class has the name."""
    before = dict(ROUTERS)
    with pytest.raises(InputError, match=said):
        router(kind)(cls)
    assert before == ROUTERS


def test_the_same_class_can_be_registered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is loaded again, or that also runs as the main program, registers its class again."""
    monkeypatch.setitem(ROUTERS, "mine", RoundRobin)
    again = type("RoundRobin", (RoundRobin,), {"__module__": RoundRobin.__module__})
    assert router("mine")(again) is again
    main = type("RoundRobin", (RoundRobin,), {"__module__": "__main__"})
    assert router("mine")(main) is main
