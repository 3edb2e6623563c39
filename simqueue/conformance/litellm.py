"""Recorded decisions of LiteLLM's strategies, compared with ours one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from simqueue.conformance.decisions import (
    SeenReplica,
    count_differences,
    decision_differences,
    in_step,
    recorded_settings,
)
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.request import Request
from simqueue.routing import Ranking
from simqueue.routing.litellm.busy import LeastBusy
from simqueue.routing.litellm.keys import LiteLlmSettings
from simqueue.routing.litellm.latency import LowestLatency
from simqueue.routing.litellm.router import STRATEGIES


def differences(recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between a recording and our decisions."""
    walk = Walk(recorded)
    for number, step in enumerate(recorded["steps"]):
        yield from in_step(number, step, walk.step(step))


class Walk:
    """Goes through the steps of one recording."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        strategy = STRATEGIES.get(str(recorded["strategy"]))
        if strategy is None:
            raise InputError(unknown("strategy", recorded["strategy"], STRATEGIES))
        self._reserves = recorded.get("reserve", False)
        self.workers = [SeenReplica(number, str(number)) for number in range(recorded["workers"])]
        self.router = strategy(_settings(recorded), Random(0))
        self.now_s = 0.0
        self._steps: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
            "burst": self._burst,
            "pick": self._pick,
            "start": self._start,
            "end": self._end,
            "clock": self._clock,
            "done": self._done,
        }

    def step(self, step: Mapping[str, Any]) -> Iterator[str]:
        """Take one step of the recording; yield what differs."""
        take = self._steps.get(str(step["op"]))
        if take is None:
            raise InputError(unknown("step", step["op"], self._steps))
        return take(step)

    def _burst(self, step: Mapping[str, Any]) -> Iterator[str]:
        ranking = self._ranked("burst", step.get("prompt_tokens", 0))
        if isinstance(self.router, LowestLatency):
            self.router.looked(self.now_s)
        none = step.get("none", 0)
        if none != (0 if ranking.chances else step["n"]):
            yield f"none {0 if ranking.chances else step['n']} of {step['n']} times, recorded {none}"
        yield from count_differences(ranking.chances, step["counts"])

    def _pick(self, step: Mapping[str, Any]) -> Iterator[str]:
        ranking = self._ranked(step["id"])
        yield from decision_differences(ranking.chances, step["worker"], ranking.reason)
        if self._reserves and isinstance(self.router, LeastBusy):
            self.router.picked(_request(step["id"]), self.workers[step["worker"]], self.now_s)

    def _start(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.router.dispatched(_request(step["id"]), self.workers[step["worker"]], self.now_s)
        yield from ()

    def _end(self, step: Mapping[str, Any]) -> Iterator[str]:
        worker = self.workers[step["worker"]]
        self.router.finished(_request(step["id"]), worker, self.now_s, tokens=1, served=True)
        yield from ()

    def _clock(self, step: Mapping[str, Any]) -> Iterator[str]:
        self.now_s = step["s"]
        yield from ()

    def _done(self, step: Mapping[str, Any]) -> Iterator[str]:
        worker = self.workers[step["worker"]]
        if isinstance(self.router, LowestLatency):
            per_token_s = step["seconds"] / step["completion_tokens"]
            tokens = step.get("prompt_tokens", 0) + step["completion_tokens"]
            self.router.ended(worker.number, self.now_s, per_token_s, step.get("ttft"), tokens)
        else:
            self.router.finished(_request("done"), worker, self.now_s, tokens=step["tokens"], served=True)
        yield from ()

    def _ranked(self, name: str, prompt_tokens: int = 0) -> Ranking:
        return self.router.rank(_request(name, prompt_tokens), self.workers, self.now_s)


def _settings(recorded: Mapping[str, Any]) -> LiteLlmSettings:
    """Return the keys that were recorded; a name that has no key here is an error."""
    keys = {
        "routing_strategy": recorded["strategy"],
        "routing_strategy_args": recorded.get("args", {}),
        "litellm_params": {str(number): given for number, given in enumerate(recorded.get("params", []))},
        "stream": any(step.get("stream", False) for step in recorded["steps"]),
    }
    return recorded_settings(LiteLlmSettings, keys)


def _request(name: str, prompt_tokens: int = 0) -> Request:
    """Return a request; without a prompt where the strategies were asked without messages."""
    return Request(name, 0.0, prompt_tokens, 1)
