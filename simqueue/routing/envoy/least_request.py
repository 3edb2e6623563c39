"""LEAST_REQUEST: with equal weights the best of a few random choices, else weighted turns by load."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, View, below, healthy
from simqueue.routing.envoy.keys import EnvoySettings
from simqueue.routing.envoy.turns import WeightedTurns


class LeastRequest(Router):
    """The least loaded of `choice_count` random choices, which may be the same replica; of equal ones the first."""

    settings: EnvoySettings

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._turns = WeightedTurns(settings, random, self._weight)
        self._by_turns = False

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the chances of the draw, or the one whose turn it is."""
        able = healthy(replicas)
        self._by_turns = any(one.weight != able[0].weight for one in able)
        if self._by_turns:
            return self._turns.rank(request, replicas, now_s)
        loads = {one.number: one.in_flight for one in able}
        return Ranking(_chances(loads, self.settings.choice_count), "best choice", {"in_flight": loads})

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw and compare, or return the one whose turn it is."""
        able = healthy(replicas)
        self._by_turns = any(one.weight != able[0].weight for one in able)
        if self._by_turns:
            return self._turns.choose(request, replicas, now_s)
        choices = [able[below(self.random, len(able))] for _ in range(self.settings.choice_count)]
        return Choice(min(choices, key=lambda one: one.in_flight).number, "best choice")

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Go on to the next turn, if there are turns."""
        if self._by_turns:
            self._turns.dispatched(request, replica, now_s)

    def _weight(self, replica: View) -> float:
        return float(replica.weight / (replica.in_flight + 1) ** self.settings.active_request_bias)


def _chances(loads: dict[int, int], choices: int) -> dict[int, float]:
    """Return the chances of the least of so many draws with replacement; equal loads have equal chances."""
    ordered = sorted(loads, key=lambda number: loads[number])
    found: dict[int, float] = {}
    rest = len(ordered)
    for _, group in groupby(ordered, key=lambda number: loads[number]):
        equal = list(group)
        chance = (rest**choices - (rest - len(equal)) ** choices) / len(ordered) ** choices
        found |= dict.fromkeys(equal, chance / len(equal))
        rest -= len(equal)
    return found
