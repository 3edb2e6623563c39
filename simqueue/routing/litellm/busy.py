"""least-busy: the fewest requests in flight."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Ranking, Router, View, healthy

RESERVED_S: Final = 30.0
"""Time for which a pick counts until its request has started."""


class LeastBusy(Router):
    """The fewest requests that have started or are about to; of equal ones the first.

    In a fleet a request starts when it is picked, so that a reservation never outlasts a decision.
    """

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._started: dict[int, int] = {}
        self._picked: dict[str, tuple[int, float]] = {}

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the first with the fewest requests."""
        busy = {one.number: self._started.get(one.number, 0) for one in healthy(replicas)}
        for number, until_s in self._picked.values():
            if number in busy and now_s < until_s:
                busy[number] += 1
        best = min(busy, key=lambda number: busy[number])
        return Ranking({best: 1.0}, "least busy", {"busy": busy})

    def picked(self, request: Request, replica: View, now_s: float) -> None:
        """Reserve a place for a request that starts later."""
        self._picked[request.request_id] = (replica.number, now_s + RESERVED_S)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Count a request that starts."""
        self._picked.pop(request.request_id, None)
        self._started[replica.number] = self._started.get(replica.number, 0) + 1

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Count it no more."""
        self._started[replica.number] = max(0, self._started.get(replica.number, 0) - 1)

    def left(self, replica: View, now_s: float) -> None:
        """Forget a replica that is gone."""
        self._started.pop(replica.number, None)
