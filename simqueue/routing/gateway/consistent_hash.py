"""`consistent_hash`: the worker whose point on a ring follows the hash of the session."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import Ranking, View
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.hashing import Ring, points_of
from simqueue.routing.gateway.policy import Policy
from simqueue.settings import Settings


class ConsistentHash(Policy):
    """From the hash of the key along the ring to the first healthy worker."""

    is_independent = True

    def __init__(self, settings: Settings, random: Random, front: Front) -> None:
        super().__init__(settings, random, front)
        self._points: dict[str, tuple[int, ...]] = {}
        self._ring = Ring([])

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker found on the ring."""
        names = [replica.name for replica in replicas]
        if names != list(self._points):
            self._points = {name: self._points.get(name) or points_of(name) for name in names}
            self._ring = Ring(list(self._points.values()))
        found = self._ring.find(self.front.hashed_key(request), lambda position: replicas[position].healthy)
        return Ranking({replicas[found].number: 1.0}, "hash")
