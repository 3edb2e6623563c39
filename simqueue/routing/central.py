"""One queue at the router for all replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from simqueue.request import Request
from simqueue.routing.base import Choice, Ranking, Router, View, evenly
from simqueue.routing.loads import IN_FLIGHT, least, measured, one_of
from simqueue.routing.plain import NoKeys

_WAITS = "no free seat"


class CentralQueue(Router):
    """A request waits at the router until a healthy replica has a free seat; of several, the fewest in flight."""

    Settings = NoKeys
    holds: ClassVar[bool] = True
    summary: ClassVar[str] = "one queue at the router; a request leaves it when a replica has a free seat"
    spread = "by load"
    checked: ClassVar[str] = "theory: waits of M/M/c"

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for those with free seats and the fewest requests in flight."""
        free = _free(replicas)
        if not free:
            return Ranking({}, _WAITS)
        return Ranking(evenly(least(free, IN_FLIGHT)), "free seat", {"in_flight": measured(free, IN_FLIGHT)})

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw one of them."""
        free = _free(replicas)
        if not free:
            return Choice(None, _WAITS)
        return Choice(one_of(self.random, least(free, IN_FLIGHT)).number, "free seat")


def _free(replicas: Sequence[View]) -> list[View]:
    return [replica for replica in replicas if replica.healthy and replica.free_seats > 0]
