"""Recorded decisions of sglang-router and vllm-router, compared with ours one by one.

At each decision the recorded worker must be one that our rule can choose. Then the recorded one goes into the state,
so that a random choice does not change what follows.

In versions in which a look-up is a use, it can carry the same time as the insertion after it. Then the order in which
an eviction takes them is arbitrary. A recording agrees if it does with one of the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from simqueue.conformance.decisions import (
    SeenReplica,
    count_differences,
    decision_differences,
    in_step,
    recorded_request,
)
from simqueue.conformance.http_inputs import POOLS, SentFront, pair_of, policy_of, prompt_of
from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.routing import Ranking, Router
from simqueue.routing.gateway.cache_aware import CacheAware
from simqueue.routing.gateway.sticky import StickyLeastLoaded

Age = Callable[[int], tuple[int, float]]
"""Sorts uses in an eviction; see `PrefixTree.leaving`."""
_BETWEEN_S = 0.001
"""Between two steps: any time in which no session expires and no two steps are at once."""
_ORDERS = 100
"""Orders of uses at the same time that are tried in one eviction, and"""
_WALKS = 20
"""times that a recording with evictions is tried from its beginning with others."""


def differences(recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between a recording and our decisions."""
    evicts = any(step["op"] == "evict" for step in recorded["steps"])
    best: tuple[int, list[str]] = (-1, [])
    for seed in range(_WALKS if evicts else 1):
        walk = PairWalk(recorded, seed) if "roles" in recorded else SingleWalk(recorded, seed)
        found = [(number, line) for number, line in _walked(walk, recorded["steps"])]
        if not found:
            return
        if found[0][0] > best[0]:
            best = found[0][0], [line for _, line in found]
    yield from best[1]


def _walked(walk: Walk, steps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    for number, step in enumerate(steps):
        for line in in_step(number, step, walk.step(step)):
            yield number, line


class Walk:
    """Goes through the steps of one recording.

    Parameters
    ----------
    recorded : mapping
        The content of a recording.
    seed : int
        Of what is arbitrary.
    """

    def __init__(self, recorded: Mapping[str, Any], seed: int = 0) -> None:
        self._seed = seed
        self._ties = Random(seed)
        self.front = SentFront(recorded)
        self.workers = [SeenReplica(number, url) for number, url in enumerate(recorded["workers"])]
        for worker, tokens in zip(self.workers, recorded.get("reported_tokens", ()), strict=False):
            worker.tokens = tokens
        later = [step["worker"] for step in recorded["steps"] if step["op"] == "add"]
        self.order = [number for number in range(len(self.workers)) if number not in later]
        self.now_s = 0.0
        self.held: dict[str, tuple[Request, list[SeenReplica]]] = {}

    @property
    def routers(self) -> Sequence[Router]:
        """The policies, one for each pool."""
        raise NotImplementedError

    def step(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Take one step of the recording; yield what differs."""
        take: Callable[[Mapping[str, Any]], Iterator[str] | None] | None = getattr(self, f"op_{step['op']}", None)
        if take is None:
            raise InputError(f"step {step['op']!r} is not known")
        self.now_s += _BETWEEN_S
        return take(step) or iter(())

    def ask(self, step: Mapping[str, Any]) -> Request:
        """Take the loads and the request of a step."""
        for worker, load in zip(self.workers, step["loads"], strict=False):  # those that join later have none yet
            worker.in_flight = load
        self.front.see(step)
        return recorded_request(step.get("id", "burst"), prompt_of(step), arrival_s=self.now_s)

    def send(self, step: Mapping[str, Any], request: Request, chosen: list[SeenReplica]) -> None:
        """Note where a request is; it has ended before the next step unless it is held."""
        self.held[step["id"]] = (request, chosen)
        for worker in chosen:
            worker.in_flight_prompt_tokens += request.prompt_tokens
        if not step.get("hold"):
            self.op_finish(step)

    def op_finish(self, step: Mapping[str, Any]) -> None:
        """End a request."""
        request, chosen = self.held.pop(step["id"])
        for router, worker in zip(self.routers, chosen, strict=True):
            worker.in_flight_prompt_tokens -= request.prompt_tokens
            router.finished(request, worker, self.now_s, tokens=request.output_tokens, served=True)

    def op_health(self, step: Mapping[str, Any]) -> None:
        """Change what the router knows of a worker."""
        self.workers[step["worker"]].healthy = step["ok"]

    def op_add(self, step: Mapping[str, Any]) -> None:
        """Let a worker join."""
        self.order = step["order"]
        for router in self.routers:
            router.joined(self.workers[step["worker"]], self.now_s)

    def op_remove(self, step: Mapping[str, Any]) -> None:
        """Let a worker leave."""
        self.order = step["order"]
        for router in self.routers:
            router.left(self.workers[step["worker"]], self.now_s)

    def op_sleep(self, step: Mapping[str, Any]) -> None:
        """Let time pass."""
        self.now_s += step["s"]

    def op_finish_session(self, step: Mapping[str, Any]) -> None:
        """End a session."""
        for router in self.routers:
            if isinstance(router, StickyLeastLoaded):
                router.finish_session(step["session_id"])

    def op_evict(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Make a pass of eviction, and compare the characters of each worker before and after."""
        for router in self.routers:
            if isinstance(router, CacheAware):
                yield from _size_differences(router, step["before"], "before")
                self._evict(router, step["after"])
                yield from _size_differences(router, step["after"], "after")

    def _evict(self, router: CacheAware, after: Sequence[int]) -> None:
        """Make a pass. Where uses can be at the same time, take an order that leaves what was recorded, if any does."""
        tree, most = router.tree, router.keys.max_tree_size
        for owner, recorded in enumerate(after):
            nodes = tree.leaving(owner, most, self._age(router))
            size = tree.sizes.get(owner, 0)
            for _ in range(_ORDERS if router.rules.look_up_is_use else 0):
                if size - sum(node.length for node in nodes) == recorded:
                    break
                nodes = tree.leaving(owner, most, _shuffled(self._ties))
            tree.take(nodes, owner)

    def _age(self, router: CacheAware) -> Age | None:
        """Return the order that is tried first: that of time in the first walk."""
        return _shuffled(self._ties) if self._seed and router.rules.look_up_is_use else None


def _shuffled(random: Random) -> Age:
    """Return an order of uses by request, and by chance between the look-up and the insertion of one request."""
    drawn: dict[int, float] = {}
    return lambda use: ((use + 1) // 2, drawn.setdefault(use, random.random()))


def _size_differences(router: CacheAware, recorded: Sequence[int], when: str) -> Iterator[str]:
    ours = [router.tree.sizes.get(number, 0) for number in range(len(recorded))]
    if ours != recorded:
        yield f"characters {when} the eviction {ours}, recorded {recorded}"


class SingleWalk(Walk):
    """One pool of workers."""

    def __init__(self, recorded: Mapping[str, Any], seed: int = 0) -> None:
        super().__init__(recorded, seed)
        self.router = policy_of(recorded, self.front)

    @property
    def routers(self) -> Sequence[Router]:
        """The only policy."""
        return [self.router]

    def op_send(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Compare a decision."""
        request = self.ask(step)
        ranking = self._rank(request)
        yield from decision_differences(ranking.chances, step["worker"], ranking.reason)
        if step["worker"] is not None:
            self.router.dispatched(request, self.workers[step["worker"]], self.now_s)
            self.send(step, request, [self.workers[step["worker"]]])

    def _rank(self, request: Request) -> Ranking:
        views = self.views()
        if not any(worker.healthy for worker in views):
            return Ranking({}, "none is healthy")
        return self.router.rank(request, views, self.now_s)

    def op_burst(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Compare the counts of many decisions, each ended before the next."""
        request = self.ask(step)
        ranking = self._rank(request)
        if len(ranking.chances) > 1:
            return count_differences(ranking.chances, step["counts"])
        return self._certain_burst(step, request)

    def _certain_burst(self, step: Mapping[str, Any], request: Request) -> Iterator[str]:
        counts = [0 for _ in step["counts"]]
        for _ in range(step["n"]):
            (number,) = self.router.rank(request, self.views(), self.now_s).chances
            self.router.dispatched(request, self.workers[number], self.now_s)
            counts[number] += 1
        if counts != step["counts"]:
            yield f"counts {counts}, recorded {step['counts']}"

    def views(self) -> list[SeenReplica]:
        """Return the workers in the router's own order."""
        return [self.workers[number] for number in self.order]


class PairWalk(Walk):
    """A pool of workers for prefill and one for decode."""

    def __init__(self, recorded: Mapping[str, Any], seed: int = 0) -> None:
        super().__init__(recorded, seed)
        self.router = pair_of(recorded, self.front)
        self._roles = recorded["roles"]
        self._orders = recorded.get("pool_order", {})

    @property
    def routers(self) -> Sequence[Router]:
        """Both policies."""
        return [self.router.prefill, self.router.decode]

    def op_send(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Compare both decisions."""
        request = self.ask(step)
        rankings = self.router.rank(request, self.pool("prefill"), self.pool("decode"), self.now_s)
        for pool, ranking in zip(POOLS, rankings, strict=True):
            yield from (f"{pool}: {line}" for line in decision_differences(ranking.chances, step[pool], ranking.reason))
        chosen = [self.workers[step[pool]] for pool in POOLS]
        self.router.dispatched(request, chosen[0], chosen[1], self.now_s)
        self.send(step, request, chosen)

    def pool(self, role: str) -> list[SeenReplica]:
        """Return the workers of a pool in its own order."""
        order = self._orders.get(role, self.order)
        return [self.workers[n] for n in order if self._roles[n] == role and n in self.order]
