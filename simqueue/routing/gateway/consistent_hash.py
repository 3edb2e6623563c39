"""`consistent_hash`: the worker whose point on a ring follows the hash of the session."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.request import Request
from simqueue.routing.base import Ranking, View
from simqueue.routing.gateway.hashing import Ring
from simqueue.routing.gateway.policy import Policy


class ConsistentHash(Policy):
    """From the hash of the key along the ring to the first healthy worker."""

    is_independent = True

    _ring: Ring | None = None
    _names: tuple[str, ...] = ()

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker found on the ring."""
        names = tuple([replica.name for replica in replicas])
        if self._ring is None or names != self._names:
            self._ring, self._names = Ring(names), names
        found = self._ring.find(self.front.hashed_key(request), lambda position: replicas[position].healthy)
        return Ranking({replicas[found].number: 1.0}, "hash")
