"""Recorded decisions of sglang-router and vllm-router, compared with ours one by one.

At each decision the recorded worker must be one that our rule can choose. Then the recorded one goes into the state,
so that a random choice does not change what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from simqueue.conformance.decisions import (
    SeenReplica,
    count_differences,
    decision_differences,
    in_step,
    recorded_request,
)
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.request import Request
from simqueue.routing import Router
from simqueue.routing.plain import NoKeys, RandomChoice, RoundRobin

_BETWEEN_S = 0.001
"""Between two steps: any time in which no eviction starts by itself and no two steps are at once."""

PLAIN: Mapping[str, type[Router]] = {"round_robin": RoundRobin, "random": RandomChoice}


def differences(recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between a recording and our decisions."""
    walk = Walk(recorded)
    for number, step in enumerate(recorded["steps"]):
        yield from in_step(number, step, walk.step(step))


class Walk:
    """Goes through the steps of one recording."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        kind = PLAIN.get(recorded["policy"])
        if kind is None:
            raise InputError(unknown("policy", recorded["policy"], PLAIN))
        self.router = kind(NoKeys(), Random(0))
        self.workers = [SeenReplica(number, url) for number, url in enumerate(recorded["workers"])]
        later = [step["worker"] for step in recorded["steps"] if step["op"] == "add"]
        self.order = [number for number in range(len(self.workers)) if number not in later]
        self.now_s = 0.0
        self._held: dict[str, tuple[Request, SeenReplica]] = {}

    def step(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Take one step of the recording; yield what differs."""
        take: Callable[[Mapping[str, Any]], Iterator[str]] | None = getattr(self, f"_{step['op']}", None)
        if take is None:
            raise InputError(f"step {step['op']!r} is not known")
        self.now_s += _BETWEEN_S
        return take(step)

    def _views(self) -> list[SeenReplica]:
        return [self.workers[number] for number in self.order]

    def _send(self, step: Mapping[str, Any]) -> Iterator[str]:
        request = recorded_request(step["id"], step["prompt"], arrival_s=self.now_s)
        self._see_loads(step)
        ranking = self.router.rank(request, self._views(), self.now_s)
        yield from decision_differences(ranking.chances, step["worker"], ranking.reason)
        chosen = self.workers[step["worker"]]
        self.router.dispatched(request, chosen, self.now_s)
        self._held[step["id"]] = (request, chosen)
        if not step.get("hold"):
            self._end(step["id"])

    def _burst(self, step: Mapping[str, Any]) -> Iterator[str]:
        request = recorded_request("burst", step["prompt"], arrival_s=self.now_s)
        self._see_loads(step)
        ranking = self.router.rank(request, self._views(), self.now_s)
        yield from count_differences(ranking.chances, step["counts"])

    def _finish(self, step: Mapping[str, Any]) -> Iterator[str]:
        self._end(step["id"])
        yield from ()

    def _health(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.workers[step["worker"]].healthy = step["ok"]
        yield from ()

    def _add(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.order = step["order"]
        self.router.joined(self.workers[step["worker"]], self.now_s)
        yield from ()

    def _remove(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.order = step["order"]
        self.router.left(self.workers[step["worker"]], self.now_s)
        yield from ()

    def _sleep(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.now_s += step["s"]
        yield from ()

    def _see_loads(self, step: Mapping[str, Any]) -> None:
        for worker, load in zip(self.workers, step["loads"], strict=False):  # those that join later have none yet
            worker.in_flight = load

    def _end(self, name: str) -> None:
        request, worker = self._held.pop(name)
        self.router.finished(request, worker, self.now_s, tokens=request.output_tokens, served=True)
