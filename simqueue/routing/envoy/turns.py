"""Weighted turns by the earliest deadline: each pick of a replica sets its next one 1/weight later.

Source: Envoy, source/common/upstream/edf_scheduler.h, and its documentation of load balancers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Ranking, Router, View, healthy


class Turns:
    """The deadlines of replicas. Of equal deadlines, the one that was set first is the earlier."""

    def __init__(self, weights: dict[int, float]) -> None:
        self._deadlines = {number: (1 / weight, i) for i, (number, weight) in enumerate(weights.items())}
        self._set = len(weights)

    def numbers(self) -> tuple[int, ...]:
        """Return the replicas, in the order in which they were given."""
        return tuple(self._deadlines)

    def next(self) -> int:
        """Return the replica whose turn it is."""
        return min(self._deadlines, key=lambda number: self._deadlines[number])

    def take(self, number: int, weight: float) -> None:
        """Set the next deadline of a replica that was chosen, by its weight now."""
        now, _ = self._deadlines[number]
        self._deadlines[number] = (now + 1 / weight, self._set)
        self._set += 1


class WeightedTurns(Router):
    """Healthy replicas in turn by weight. The turns begin anew when the healthy ones change.

    The product begins with a random number of picks, so that its instances do not choose in step; there is one here.

    Parameters
    ----------
    settings : Settings
    random : Random
    weight_of : callable
        Weight of a replica as it is now.
    """

    def __init__(self, settings: AnySettings, random: Random, weight_of: Callable[[View], float]) -> None:
        super().__init__(settings, random)
        self._weight_of = weight_of
        self._turns = Turns({})
        self._asked_about: tuple[Turns, dict[int, float]] = (self._turns, {})

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the one whose turn it is."""
        weights = {one.number: self._weight_of(one) for one in healthy(replicas)}
        turns = self._turns if self._turns.numbers() == tuple(weights) else Turns(weights)
        self._asked_about = (turns, weights)  # `dispatched` needs them, and is not told
        return Ranking({turns.next(): 1.0}, "turn", {"weight": weights})

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Set its next turn."""
        self._turns, weights = self._asked_about
        if replica.number in weights:
            self._turns.take(replica.number, weights[replica.number])
