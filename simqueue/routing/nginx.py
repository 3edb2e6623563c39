"""nginx as a load balancer: round robin, least_conn, random, random two least_conn, hash consistent."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar, Literal

from pydantic import Field

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Recovery, Router, View, drawn, healthy
from simqueue.routing.session import SessionAffinity, SessionSettings
from simqueue.routing.several import Several
from simqueue.routing.weighted import Weighted, WeightedSettings
from simqueue.settings import Settings

_POINTS = 160


class NginxSettings(Settings):
    """Keys of `Nginx`."""

    method: Literal["round_robin", "least_conn", "random", "random two least_conn", "hash consistent"] = Field(
        "round_robin",
        description="the directive of the upstream block; weights are those of the fleet's groups, and the key of hash "
        "is the session",
    )


class LeastConn(Weighted):
    """The fewest requests in flight per weight; of equal ones, smooth turns."""

    is_independent = False

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(WeightedSettings(smooth=True), random)

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the least loaded one, or the one of several whose turn it is."""
        able = healthy(replicas)
        best = able[0]
        for one in able[1:]:
            if one.in_flight * best.weight < best.in_flight * one.weight:
                best = one
        equal = [one for one in able if one.in_flight * best.weight == best.in_flight * one.weight]
        if len(equal) > 1:
            return self._turn(equal)
        self._asked_about = []
        return Ranking({best.number: 1.0}, "fewest connections")


class TwoRandom(Router):
    """Of two different replicas that are drawn by weight, the one with fewer requests in flight per weight.

    Equal: the second that was drawn. The product draws at most 20 times and then takes turns; here it draws on.
    """

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the chances over all pairs."""
        able = healthy(replicas)
        if len(able) == 1:
            return Ranking({able[0].number: 1.0}, "only one")
        total = sum(one.weight for one in able)
        chances = dict.fromkeys([one.number for one in able], 0.0)
        for first in able:
            for second in able:
                if second is not first:
                    pair = first.weight / total * second.weight / (total - first.weight)
                    chances[_better(first, second).number] += pair
        return Ranking({number: chance for number, chance in chances.items() if chance > 0}, "better of two")

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw two and compare them."""
        able = {one.number: one for one in healthy(replicas)}
        if len(able) == 1:
            return Choice(next(iter(able)), "only one")
        weights = {number: one.weight for number, one in able.items()}
        first = drawn(self.random, weights)
        del weights[first]
        second = drawn(self.random, weights)
        return Choice(_better(able[first], able[second]).number, "better of two")


def _better(first: View, second: View) -> View:
    return first if second.in_flight * first.weight > first.in_flight * second.weight else second


class Nginx(Several):
    """The methods of nginx's upstream module."""

    Settings = NginxSettings
    settings: NginxSettings
    summary: ClassVar[str] = "nginx: weighted turns, fewest connections, better of two random ones, consistent hash"
    checked: ClassVar[str] = "source (master branch)"
    recovery: ClassVar[Recovery] = Recovery(
        retries=0,
        breaker_failures=1,
        breaker_window_s=10.0,
        breaker_open_s=10.0,
        source="nginx documentation",
    )

    def made(self) -> Router:
        """Return the policy of `method`."""
        method = self.settings.method
        if method == "least_conn":
            return LeastConn(self.settings, self.random)
        if method == "random two least_conn":
            return TwoRandom(self.settings, self.random)
        if method == "hash consistent":
            return SessionAffinity(SessionSettings(points=_POINTS, load_factor=None), self.random)
        return Weighted(WeightedSettings(smooth=method == "round_robin"), self.random)
