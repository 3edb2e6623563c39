"""Envoy's load balancers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Ranking, Recovery, Router, View, healthy
from simqueue.routing.envoy.hashes import ByHash, maglev, ring
from simqueue.routing.envoy.keys import EnvoySettings
from simqueue.routing.envoy.least_request import LeastRequest
from simqueue.routing.envoy.turns import WeightedTurns
from simqueue.routing.plain import NoKeys, RandomChoice, RoundRobin
from simqueue.routing.several import Several


class InTurn(Router):
    """The healthy replicas in turn; with unequal weights, by weight."""

    is_independent = True

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._even = RoundRobin(NoKeys(), random)
        self._weighted = WeightedTurns(settings, random, lambda one: one.weight)
        self._now: Router = self._even

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the one whose turn it is."""
        able = healthy(replicas)
        uneven = any(one.weight != able[0].weight for one in able)
        self._now = self._weighted if uneven else self._even
        return self._now.rank(request, replicas, now_s)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Go on to the next turn."""
        self._now.dispatched(request, replica, now_s)


class Envoy(Several):
    """The load balancing policies of Envoy."""

    Settings = EnvoySettings
    settings: EnvoySettings
    summary: ClassVar[str] = "Envoy: turns by weight, least requests, random, ring hash, Maglev"
    checked: ClassVar[str] = "source (main branch) and documentation"
    recovery: ClassVar[Recovery] = Recovery(retries=0, source="Envoy documentation")

    def made(self) -> Router:
        """Return the policy of `lb_policy`."""
        policy = self.settings.lb_policy
        if policy == "LEAST_REQUEST":
            return LeastRequest(self.settings, self.random)
        if policy == "RING_HASH":
            return ByHash(self.settings, self.random, ring)
        if policy == "MAGLEV":
            return ByHash(self.settings, self.random, maglev)
        if policy == "RANDOM":
            return RandomChoice(NoKeys(), self.random)
        return InTurn(self.settings, self.random)
