"""Recorded decisions of Dynamo's KV router, compared with ours one by one.

Beside the chosen worker, the cached blocks, the loads and the prefill tokens of each decision are compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from simqueue.conformance.decisions import (
    SeenReplica,
    count_differences,
    decision_differences,
    in_step,
    recorded_request,
    recorded_settings,
)
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.request import Request
from simqueue.routing import Ranking
from simqueue.routing.blocks import Blocks, Key
from simqueue.routing.dynamo.keys import DynamoSettings
from simqueue.routing.dynamo.kv import KvRouter

_LOADS = ("prefill_tokens", "decode_blocks", "requests")


@dataclass(slots=True)
class CacheEvents:
    """The blocks that a worker has by its KV events.

    A block that is removed takes those after it along: storing it again does not bring them back.
    """

    children: dict[Key, list[Key]] = field(default_factory=dict)

    def store(self, keys: Sequence[Key], first: int) -> None:
        """Add the blocks of a prompt from the one with number `first` on; nothing if the block before is not there."""
        if first and keys[first - 1] not in self.children:
            return
        for i in range(first, len(keys)):
            if keys[i] not in self.children:
                self.children[keys[i]] = []
                if i:
                    self.children[keys[i - 1]].append(keys[i])

    def remove(self, key: Key) -> None:
        """Take a block away, and all that follow it."""
        rest = [key]
        while rest:
            rest += self.children.pop(rest.pop(), [])

    def overlap(self, keys: Sequence[Key]) -> int:
        """Return how many blocks at the beginning it has."""
        return next((i for i, key in enumerate(keys) if key not in self.children), len(keys))


@dataclass(slots=True)
class EventReplica(SeenReplica):
    """A replica whose cache is what its events say."""

    events: CacheEvents = field(default_factory=CacheEvents)
    blocks: Blocks = field(default_factory=Blocks)

    def cached_tokens(self, request: Request) -> int:
        """Return the tokens of the blocks that it has."""
        return self.events.overlap(self.keys(request)) * self.block_size

    def keys(self, request: Request) -> tuple[Key, ...]:
        """Return the whole blocks of a prompt."""
        return self.blocks.of(request, self.block_size)


def differences(recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between a recording and our decisions."""
    walk = Walk(recorded)
    for number, step in enumerate(recorded["steps"]):
        yield from in_step(number, step, walk.step(step))


class Walk:
    """Goes through the steps of one recording."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self.router = KvRouter(recorded_settings(DynamoSettings, recorded.get("config", {})), Random(0))
        size = recorded["block_size"]
        budget = recorded.get("max_num_batched_tokens")
        self.workers = [
            EventReplica(number, block_size=size, max_num_batched_tokens=budget)
            for number in range(recorded["workers"])
        ]
        self.now_s = 0.0
        self._booked: dict[str, tuple[Request, EventReplica]] = {}
        self._steps: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
            "store": self._store,
            "remove": self._remove,
            "clear": self._clear,
            "query": self._query,
            "reserve": self._reserve,
            "waits": self._waits,
            "book": self._book,
            "prefill_complete": self._prefill_complete,
            "output_block": self._output_block,
            "free": self._free,
        }

    def step(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Take one step of the recording; yield what differs."""
        take = self._steps.get(str(step["op"]))
        if take is None:
            raise InputError(unknown("step", step["op"], self._steps))
        self.now_s = step.get("at_s", self.now_s)
        return take(step)

    def _store(self, step: Mapping[str, Any]) -> Iterator[str]:
        worker = self.workers[step["worker"]]
        worker.events.store(worker.keys(_request("stored", step)), step.get("from_block", 0))
        yield from ()

    def _remove(self, step: Mapping[str, Any]) -> Iterator[str]:
        worker = self.workers[step["worker"]]
        keys = worker.keys(_request("removed", step))
        for number in step["blocks"]:
            worker.events.remove(keys[number])
        yield from ()

    def _clear(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.workers[step["worker"]].events = CacheEvents()
        yield from ()

    def _query(self, step: Mapping[str, Any]) -> Iterator[str]:
        ranking = self._ranked(_request("query", step))
        yield from _quantities(ranking, step)
        yield from count_differences(ranking.chances, step["picked"])

    def _reserve(self, step: Mapping[str, Any]) -> Iterator[str]:
        request = _request(step["id"], step)
        ranking = self._ranked(request)
        yield from _quantities(ranking, step)
        yield from decision_differences(ranking.chances, step["worker"], ranking.reason)
        worker = self.workers[step["worker"]]
        before = self.router.loads.open_prefill_tokens(worker.number)
        self.router.dispatched(request, worker, self.now_s)
        added = self.router.loads.open_prefill_tokens(worker.number) - before
        self._booked[step["id"]] = (request, worker)
        yield from _compared("effective_prefill_tokens", added, step)

    def _waits(self, step: Mapping[str, Any]) -> Iterator[str]:
        ranking = self._ranked(_request("waits", step))
        yield from decision_differences(ranking.chances, None, ranking.reason)

    def _book(self, step: Mapping[str, Any]) -> Iterator[str]:
        worker = self.workers[step["worker"]]
        request = _request(step["id"], step)
        self.router.loads.book(step["id"], worker.number, worker.keys(request), 0)
        self._booked[step["id"]] = (request, worker)
        yield from ()

    def _prefill_complete(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.router.first_token(*self._booked[step["id"]], self.now_s)
        yield from ()

    def _output_block(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.router.loads.output_block(step["id"])
        yield from ()

    def _free(self, step: Mapping[str, Any]) -> Iterator[str]:
        request, worker = self._booked.pop(step["id"])
        self.router.finished(request, worker, self.now_s, tokens=request.output_tokens, served=True)
        yield from ()

    def _ranked(self, request: Request) -> Ranking:
        return self.router.rank(request, self.workers, self.now_s)


def _request(name: str, step: Mapping[str, Any]) -> Request:
    return recorded_request(name, step["tokens"])


def _quantities(ranking: Ranking, step: Mapping[str, Any]) -> Iterator[str]:
    scores = ranking.scores
    yield from _compared("overlap_blocks", list(scores["overlap_blocks"].values()), step)
    rows = zip(*(scores[name].values() for name in _LOADS), strict=True)
    yield from _compared("loads", [list(row) for row in rows], step)


def _compared(name: str, ours: object, step: Mapping[str, Any]) -> Iterator[str]:
    if ours != step[name]:
        yield f"{name} {ours}, recorded {step[name]}"
