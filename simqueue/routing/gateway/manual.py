"""`manual`: a routing key stays with the worker that it got first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import Ranking, View, healthy
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.policy import Policy, evenly_among, loads, lowest
from simqueue.routing.gateway.settings import SglangSettings

_MOST_WORKERS = 2
"""Workers of a key: a second one while the first is unhealthy."""


class Manual(Policy):
    """Keys with their workers, in the order in which they got them; the first healthy one is used."""

    def __init__(self, settings: SglangSettings, random: Random, front: Front) -> None:
        super().__init__(settings, random, front)
        self.keys = settings
        self._keys: OrderedDict[str, tuple[tuple[int, ...], float]] = OrderedDict()
        self._groups: dict[int, int] = {}

    @property
    def is_independent(self) -> bool:
        """Whether new keys do not go by requests in flight."""
        return self.keys.assignment_mode != "min_load"

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker of the key, or those that a new key can get."""
        self._expire(now_s)
        able = healthy(replicas)
        key = self.front.key(request)
        if key is None:
            return evenly_among(able, "no key")
        well = dict.fromkeys(replica.number for replica in able)
        worker = next((number for number in self._workers(key) if number in well), None)
        if worker is not None:
            return Ranking({worker: 1.0}, "key")
        if self.keys.assignment_mode == "min_load":
            return evenly_among(lowest(able, lambda replica: replica.in_flight), "new key", in_flight=loads(able))
        if self.keys.assignment_mode == "min_group":
            groups = {replica.number: float(self._group(replica)) for replica in able}
            return evenly_among(lowest(able, self._group), "new key", keys=groups)
        return evenly_among(able, "new key")

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Keep the key with the worker."""
        key = self.front.key(request)
        if key is None:
            return
        workers = self._workers(key)
        if replica.number not in workers:
            workers = (*workers[-(_MOST_WORKERS - 1) :], replica.number)
        self._set(key, workers, now_s)

    def left(self, replica: View, now_s: float) -> None:
        """Take it from its keys."""
        for key, (workers, used_s) in list(self._keys.items()):
            if replica.number in workers:
                rest = tuple([number for number in workers if number != replica.number])
                if rest:
                    self._set(key, rest, used_s, newest=False)
                else:
                    self._forget(key)
        self._groups.pop(replica.number, None)

    def _workers(self, key: str) -> tuple[int, ...]:
        return self._keys.get(key, ((), 0.0))[0]

    def _group(self, replica: View) -> int:
        return self._groups.get(replica.number, 0)

    def _set(self, key: str, workers: tuple[int, ...], used_s: float, *, newest: bool = True) -> None:
        self._count(self._workers(key), -1)
        self._count(workers, 1)
        self._keys[key] = (workers, used_s)
        if newest:
            self._keys.move_to_end(key)

    def _forget(self, key: str) -> None:
        self._count(self._workers(key), -1)
        del self._keys[key]

    def _count(self, workers: tuple[int, ...], change: int) -> None:
        if workers:
            self._groups[workers[0]] = self._groups.get(workers[0], 0) + change

    def _expire(self, now_s: float) -> None:
        while self._keys:
            key, (_, used_s) = next(iter(self._keys.items()))
            if now_s - used_s < self.keys.max_idle_secs:
                return
            self._forget(key)
