"""Requests of a session to the same replica, by consistent hashing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

from pydantic import Field

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Ranking, Router, View, healthy
from simqueue.routing.ring import Ring
from simqueue.settings import Count, Settings


class SessionSettings(Settings):
    """Keys of `SessionAffinity`."""

    points: Count = Field(
        160, ge=1, le=100_000, description="points of a replica with weight 1 on the circle; more spread keys better"
    )
    load_factor: float | None = Field(
        None,
        gt=1,
        description="bounded loads: a replica takes at most this many times its share of all requests in flight, by "
        "weight; above it, the next one on the circle does. null: no bound",
    )


class SessionAffinity(Router):
    """The replica that follows the session on a circle; a request without a session goes by its own name.

    An unhealthy replica is passed over, and so is one above its bound (Mirrokni, Thorup and Zadimoghaddam 2018,
    Consistent hashing with bounded loads).
    """

    Settings = SessionSettings
    settings: SessionSettings
    summary: ClassVar[str] = "requests of a session to the same replica, by consistent hashing"
    checked: ClassVar[str] = "another computation of the circle"

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._ring = Ring(self.settings.points)
        self._on_ring: tuple[int, ...] = ()

    @property
    def is_independent(self) -> bool:
        """Without a bound, only the session counts."""
        return self.settings.load_factor is None

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the first on the circle that is healthy and below its bound."""
        self._place(replicas)
        by_number = {replica.number: replica for replica in replicas}
        has_room = self._room(replicas)
        reason = "no session" if request.session is None else "session"
        for number in self._ring.along(request.request_id if request.session is None else request.session):
            replica = by_number[number]
            if replica.healthy and has_room(replica):
                return Ranking({number: 1.0}, reason)
            reason = "over the bound" if replica.healthy else "home is down"
        return Ranking({}, "none is healthy")

    def _place(self, replicas: Sequence[View]) -> None:
        """Renew the circle if the replicas are others than before: they follow from `replicas` alone."""
        numbers = tuple([replica.number for replica in replicas])
        if numbers != self._on_ring:
            self._ring.place(replicas)
            self._on_ring = numbers

    def _room(self, replicas: Sequence[View]) -> Callable[[View], bool]:
        factor = self.settings.load_factor
        if factor is None:
            return lambda _: True
        able = healthy(replicas)
        most, weights = factor * (1 + sum(one.in_flight for one in able)), sum(one.weight for one in able)
        return lambda replica: replica.in_flight < math.ceil(most * replica.weight / weights)
