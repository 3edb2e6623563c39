"""`sticky_least_loaded`: a session stays with its worker; a new one goes to the worker with the fewest sessions.

Source, beside recordings: vllm-router, ``src/policies/sticky_least_loaded.rs`` (commit 335c57e2).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import Ranking, View, healthy
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.hashing import ring_hash
from simqueue.routing.gateway.policy import Policy, lowest
from simqueue.routing.gateway.settings import VllmRouterSettings

_NOWHERE = (-1, 0.0)


class StickyLeastLoaded(Policy):
    """Sessions, and not requests, are counted."""

    is_independent = True

    def __init__(self, settings: VllmRouterSettings, random: Random, front: Front) -> None:
        super().__init__(settings, random, front)
        self.keys = settings
        self._sessions: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._counts: dict[int, int] = {}

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker of the session if it is healthy, or else of those with the fewest sessions one by hash."""
        self._expire(now_s)
        able = healthy(replicas)
        session = self.front.key(request)
        scores = {"sessions": {replica.number: float(self._count(replica)) for replica in replicas}}
        fewest = lowest(able, self._count)
        worker, _ = self._sessions.get(session, _NOWHERE) if session is not None else _NOWHERE
        if any(replica.number == worker for replica in able):
            return Ranking({worker: 1.0}, "session", scores)
        name = self.front.words(request) if session is None else session
        chosen = max(fewest, key=lambda replica: ring_hash(f"{name}:{replica.name}"))
        return Ranking({chosen.number: 1.0}, "no session" if session is None else "fewest sessions", scores)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Keep the session with the worker."""
        session = self.front.key(request)
        if session is not None:
            self.finish_session(session)
            self._sessions[session] = (replica.number, now_s)
            self._counts[replica.number] = self._counts.get(replica.number, 0) + 1

    def left(self, replica: View, now_s: float) -> None:
        """Forget its sessions."""
        for session in [name for name, (number, _) in self._sessions.items() if number == replica.number]:
            self.finish_session(session)

    def finish_session(self, session: str) -> None:
        """Forget a session."""
        number, _ = self._sessions.pop(session, (None, 0.0))
        if number is not None:
            self._counts[number] -= 1

    def _count(self, replica: View) -> int:
        return self._counts.get(replica.number, 0)

    def _expire(self, now_s: float) -> None:
        while self._sessions:
            session, (_, used_s) = next(iter(self._sessions.items()))
            if now_s - used_s < self.keys.session_idle_secs:
                return
            self.finish_session(session)
