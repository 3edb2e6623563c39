"""Routers that look at no replica: round robin and random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from simqueue.request import Request
from simqueue.routing.base import Choice, Ranking, Router, View, evenly, healthy
from simqueue.routing.loads import some_healthy
from simqueue.settings import Settings


class NoKeys(Settings):
    """A router without keys."""


class RoundRobin(Router):
    """The healthy replicas in turn; the counter goes on whatever joins, fails or leaves."""

    Settings = NoKeys
    summary: ClassVar[str] = "the healthy replicas in turn"
    spread = "equal shares"
    draws: ClassVar[bool] = False
    checked: ClassVar[str] = "theory: waits of Erlang gaps at each replica"
    is_independent = True

    _turn = 0

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the one whose turn it is."""
        able = healthy(replicas)
        return Ranking({able[self._turn % len(able)].number: 1.0}, "turn")

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Go on to the next one."""
        self._turn += 1


class RandomChoice(Router):
    """Each healthy replica with the same probability."""

    Settings = NoKeys
    summary: ClassVar[str] = "a healthy replica at random, all alike"
    spread = "equal shares"
    checked: ClassVar[str] = "theory: waits of M/G/1 at each replica"
    is_independent = True

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances."""
        return Ranking(evenly(healthy(replicas)), "random")

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw one of them, mostly without a look at all."""
        return Choice(some_healthy(self.random, replicas, 1)[0].number, "random")
