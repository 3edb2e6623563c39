"""`manual`: a routing key stays with the worker that it got first.

Source, beside recordings: sglang, ``sgl-model-gateway/src/policies/manual.rs`` (commit 0091690b).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
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
        self._groups: dict[int, Counter[str]] = {}

    @property
    def is_independent(self) -> bool:
        """Whether new keys do not go by what is in flight."""
        return self.keys.assignment_mode == "random"

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
        """Keep the key with the worker, and count it as in flight there."""
        key = self.front.key(request)
        if key is None:
            return
        self._groups.setdefault(replica.number, Counter())[key] += 1
        workers = self._workers(key)
        if replica.number not in workers:
            workers = (*workers[-(_MOST_WORKERS - 1) :], replica.number)
        self._keys[key] = (workers, now_s)
        self._keys.move_to_end(key)

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Count the key no longer, unless another request with it is in flight there."""
        key, group = self.front.key(request), self._groups.get(replica.number)
        if key is not None and group is not None:
            group[key] -= 1
            if group[key] <= 0:
                del group[key]

    def left(self, replica: View, now_s: float) -> None:
        """Take it from its keys."""
        self._groups.pop(replica.number, None)
        for key, (workers, used_s) in list(self._keys.items()):
            rest = tuple([number for number in workers if number != replica.number])
            if rest:
                self._keys[key] = (rest, used_s)
            else:
                del self._keys[key]

    def _workers(self, key: str) -> tuple[int, ...]:
        return self._keys.get(key, ((), 0.0))[0]

    def _group(self, replica: View) -> int:
        """Return how many different keys are in flight there."""
        return len(self._groups.get(replica.number, ()))

    def _expire(self, now_s: float) -> None:
        while self._keys:
            key, (_, used_s) = next(iter(self._keys.items()))
            if now_s - used_s < self.keys.max_idle_secs:
                return
            del self._keys[key]
