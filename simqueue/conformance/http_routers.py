"""Recorded decisions of sglang-router and vllm-router, compared with ours one by one.

At each decision the recorded worker must be one that our rule can choose. Then the recorded one goes into the state,
so that a random choice does not change what follows.

In versions in which a look-up is a use, it can carry the same time as the insertion after it. Then the order in which
an eviction takes them is arbitrary. A recording agrees if it does with one of the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
        found = list(_walked(Walk(recorded, seed), recorded["steps"]))
        if not found:
            return
        if found[0][0] > best[0]:
            best = found[0][0], [line for _, line in found]
    yield from best[1]


def _walked(walk: Walk, steps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    for number, step in enumerate(steps):
        for line in in_step(number, step, walk.step(step)):
            yield number, line


@dataclass(frozen=True, slots=True)
class Pool:
    """Workers among which one policy chooses.

    Attributes
    ----------
    key : str
        What a step calls the decision.
    router : Router
    label : str
        What stands before a difference.
    """

    key: str
    router: Router
    label: str = ""


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
        self._roles, self._orders = recorded.get("roles"), recorded.get("pool_order", {})
        if self._roles is None:
            self.pools = [Pool("worker", policy_of(recorded, self.front))]
        else:
            pair = pair_of(recorded, self.front)
            routers = zip(POOLS, (pair.prefill, pair.decode), strict=True)
            self.pools = [Pool(key, router, f"{key}: ") for key, router in routers]

    def step(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Take one step of the recording; yield what differs."""
        take: Callable[[Mapping[str, Any]], Iterator[str] | None] | None = getattr(self, f"op_{step['op']}", None)
        if take is None:
            raise InputError(f"step {step['op']!r} is not known")
        self.now_s += _BETWEEN_S
        return take(step) or iter(())

    # -- decisions -----------------------------------------------------------------------------------------------

    def op_send(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Compare a decision, or those of both pools; the request has ended before the next step unless it is held."""
        request = self.ask(step)
        chosen: list[SeenReplica] = []
        for pool, ranking in [(pool, self.rank(pool, request)) for pool in self.pools]:
            for line in decision_differences(ranking.chances, step[pool.key], ranking.reason):
                yield pool.label + line
            if step[pool.key] is not None:
                worker = self.workers[step[pool.key]]
                worker.in_flight_prompt_tokens += request.prompt_tokens
                pool.router.dispatched(request, worker, self.now_s)
                chosen.append(worker)
        self.held[step["id"]] = (request, chosen)
        if not step.get("hold"):
            self.op_finish(step)

    def op_burst(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Compare the counts of many decisions, each ended before the next."""
        request = self.ask(step)
        for pool in self.pools:
            views = dict.fromkeys(worker.number for worker in self.views(pool))
            recorded = [count if number in views else 0 for number, count in enumerate(step["counts"])]
            ranking = self.rank(pool, request)
            if len(ranking.chances) > 1:
                found = count_differences(ranking.chances, recorded)
            else:
                found = self._certain_differences(pool, request, recorded)
            for line in found:
                yield pool.label + line
        self.front.forget(request)

    def _certain_differences(self, pool: Pool, request: Request, recorded: list[int]) -> Iterator[str]:
        counts = [0 for _ in recorded]
        for _ in range(sum(recorded)):
            (number,) = self.rank(pool, request).chances
            pool.router.dispatched(request, self.workers[number], self.now_s)
            pool.router.finished(request, self.workers[number], self.now_s, tokens=1, served=True)
            counts[number] += 1
        if counts != recorded:
            yield f"counts {counts}, recorded {recorded}"

    def ask(self, step: Mapping[str, Any]) -> Request:
        """Take the loads and the request of a step."""
        for worker, load in zip(self.workers, step["loads"], strict=False):  # those that join later have none yet
            worker.in_flight = load
        request = recorded_request(step.get("id", "burst"), prompt_of(step), arrival_s=self.now_s)
        self.front.see(request, step)
        return request

    def rank(self, pool: Pool, request: Request) -> Ranking:
        """Return what is chosen of a pool."""
        views = self.views(pool)
        if not any(worker.healthy for worker in views):
            return Ranking({}, "none is healthy")
        return pool.router.rank(request, views, self.now_s)

    def views(self, pool: Pool) -> list[SeenReplica]:
        """Return the workers of a pool in the router's own order."""
        if self._roles is None:
            return [self.workers[number] for number in self.order]
        order = self._orders.get(pool.key, self.order)
        return [self.workers[n] for n in order if self._roles[n] == pool.key and n in self.order]

    # -- what happens --------------------------------------------------------------------------------------------

    def op_finish(self, step: Mapping[str, Any]) -> None:
        """End a request."""
        request, chosen = self.held.pop(step["id"])
        for pool, worker in zip(self.pools, chosen, strict=False):  # none where no worker was healthy
            worker.in_flight_prompt_tokens -= request.prompt_tokens
            pool.router.finished(request, worker, self.now_s, tokens=request.output_tokens, served=True)
        self.front.forget(request)

    def op_health(self, step: Mapping[str, Any]) -> None:
        """Change what the router knows of a worker."""
        self.workers[step["worker"]].healthy = step["ok"]

    def op_add(self, step: Mapping[str, Any]) -> None:
        """Let a worker join."""
        self.order = step["order"]
        for pool in self.pools:
            pool.router.joined(self.workers[step["worker"]], self.now_s)

    def op_remove(self, step: Mapping[str, Any]) -> None:
        """Let a worker leave."""
        self.order = step["order"]
        for pool in self.pools:
            pool.router.left(self.workers[step["worker"]], self.now_s)

    def op_sleep(self, step: Mapping[str, Any]) -> None:
        """Let time pass."""
        self.now_s += step["s"]

    def op_finish_session(self, step: Mapping[str, Any]) -> None:
        """End a session."""
        for pool in self.pools:
            if isinstance(pool.router, StickyLeastLoaded):
                pool.router.finish_session(step["session_id"])

    def op_evict(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Make a pass of eviction, and compare the characters of each worker before and after."""
        for router in [pool.router for pool in self.pools]:
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
