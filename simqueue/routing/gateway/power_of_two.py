"""`power_of_two`: the less loaded of two workers drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import Choice, Ranking, Signal, View, below, evenly, healthy
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.policy import Policy
from simqueue.routing.gateway.rules import Rules
from simqueue.routing.gateway.settings import CacheAwareSettings


class PowerOfTwo(Policy):
    """Compares the tokens that workers report, or else requests in flight; some versions do not count these.

    Parameters
    ----------
    settings, random, front
        See `Policy`.
    rules : Rules
        What differs between versions.
    """

    def __init__(self, settings: CacheAwareSettings, random: Random, front: Front, rules: Rules) -> None:
        super().__init__(settings, random, front)
        self.keys = settings
        self._counts = rules.counts_for_two

    @property
    def reads(self) -> frozenset[Signal]:
        """The tokens at the workers, if they report them."""
        return frozenset([Signal.TOKENS] if self.keys.token_loads else [])

    @property
    def is_independent(self) -> bool:
        """Whether it compares nothing."""
        return not (self.keys.token_loads or self._counts)

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return for each worker the share of the pairs that it wins."""
        able = healthy(replicas)
        values = [self._load(replica) for replica in able]
        if len(able) == 1:
            return Ranking(evenly(able), "only one", {"load": {able[0].number: float(values[0])}})
        pairs = len(able) * (len(able) - 1) / 2
        chances = {}
        for replica, value in zip(able, values, strict=True):
            won = sum(1.0 if other > value else 0.5 if other == value else 0.0 for other in values) - 0.5
            if won:
                chances[replica.number] = won / pairs
        scores = {"load": {replica.number: float(value) for replica, value in zip(able, values, strict=True)}}
        return Ranking(chances, "lower of two", scores)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw two, and return the one with the lower load, the first if they are equal."""
        able = healthy(replicas)
        if len(able) == 1:
            return Choice(able[0].number, "only one")
        first = below(self.random, len(able))
        second = below(self.random, len(able) - 1)
        second += second >= first
        lower = able[first] if self._load(able[first]) <= self._load(able[second]) else able[second]
        return Choice(lower.number, "lower of two")

    def _load(self, replica: View) -> int:
        if self.keys.token_loads:
            return replica.tokens
        return replica.in_flight if self._counts else 0
