"""The gateway of AIBrix: prefix-cache, least-request, least-kv-cache, power-of-two and random."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from statistics import mean, stdev
from typing import ClassVar, Final, Literal

from pydantic import Field, field_validator

from simqueue.request import Request
from simqueue.routing.base import Age, AnySettings, Ranking, Recovery, Router, Signal, View, evenly, healthy
from simqueue.routing.blocks import Blocks, Key
from simqueue.routing.least import LeastOutstanding, TieSettings
from simqueue.routing.loads import IN_FLIGHT, least, measured
from simqueue.routing.lru import SharedLru
from simqueue.routing.plain import NoKeys, RandomChoice
from simqueue.routing.power import PowerOfTwo, PowerSettings
from simqueue.routing.several import Several
from simqueue.settings import Count, Settings, invalid

_MINUTE_S = 60.0
_UNKNOWN: Final = {
    "throughput": "needs the engines' token rates, which a simulated engine does not report",
    "least-latency": "needs estimates of queue, prefill and decode times, which a simulated engine does not report",
}
"""Strategies of the product that are refused, and why."""

Strategy = Literal["random", "prefix-cache", "least-request", "least-kv-cache", "power-of-two"]


class AiBrixSettings(Settings):
    """Keys of `AiBrix`, by the names of AIBrix's variables."""

    routing_strategy: Strategy = Field(
        "random",
        description="prefix-cache: the longest cached prefix unless busy; least-request: the fewest requests in "
        "flight; least-kv-cache: the least used KV pool; power-of-two: the less busy of two",
    )
    prefix_cache_block_size: Count = Field(4, ge=1, description="characters of a block")
    prefix_cache_block_number: Count = Field(200_000, ge=1, description="blocks that the index holds")
    prefix_cache_eviction_duration_mins: float = Field(
        20.0, gt=0, description="time after which a block that was not sent again is dropped"
    )
    prefix_cache_eviction_interval_seconds: float = Field(
        1.0, gt=0, description="time between two checks for such blocks", json_schema_extra={"unit": "s"}
    )
    prefix_cache_pod_running_request_imbalance_abs_count: Count = Field(
        8,
        ge=0,
        description="if the busiest replica has more than this many requests more than the least busy, only the least "
        "busy are compared by prefix",
    )
    prefix_cache_standard_deviation_factor: float = Field(
        1.0, ge=0, description="a cached replica is used up to this many standard deviations above the mean load"
    )
    chars_per_token: Count = Field(
        4, ge=1, description="characters of a token; a block has at least one whole token in the simulation"
    )

    @field_validator("routing_strategy", mode="before")
    @classmethod
    def _refuse_unknown(cls, name: object) -> object:
        if isinstance(name, str) and name in _UNKNOWN:
            raise invalid(f"'{name}' {_UNKNOWN[name]}")
        return name

    @property
    def block_tokens(self) -> int:
        """Tokens of a block."""
        return max(1, self.prefix_cache_block_size // self.chars_per_token)


class PrefixCache(Router):
    """The replica with the largest share of the prompt that is not much busier than the mean; else the least busy."""

    settings: AiBrixSettings

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        given = self.settings
        self._blocks = Blocks()
        self._index = SharedLru(
            given.prefix_cache_block_number,
            given.prefix_cache_eviction_duration_mins * _MINUTE_S,
            given.prefix_cache_eviction_interval_seconds,
        )

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for the best ones."""
        able = healthy(replicas)
        keys = self._keys(request)
        numbers = [one.number for one in self._compared(able)]
        matched = self._index.matched(keys, numbers, now_s)
        percent = {number: n * 100 // len(keys) for number, n in matched.items()}
        scores: dict[str, Mapping[int, float]] = {"match_percent": percent, "in_flight": measured(able, IN_FLIGHT)}
        best = self._best(able, percent)
        if best:
            return Ranking(evenly(best), "prefix match", scores)
        return Ranking(evenly(least(able, IN_FLIGHT)), "match is busy" if percent else "least requests", scores)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Add the prompt to the index."""
        self._index.add(self._keys(request), replica.number, now_s)

    def joined(self, replica: View, now_s: float) -> None:
        """Start with nothing known of it."""
        self._index.drop(replica.number)

    def left(self, replica: View, now_s: float) -> None:
        """Forget it."""
        self._index.drop(replica.number)

    def _keys(self, request: Request) -> tuple[Key, ...]:
        return self._blocks.of(request, self.settings.block_tokens)

    def _compared(self, able: list[View]) -> list[View]:
        """Return the replicas whose prefixes count: all, or the least busy if loads are far apart."""
        loads = [one.in_flight for one in able]
        if max(loads) - min(loads) > self.settings.prefix_cache_pod_running_request_imbalance_abs_count:
            return least(able, IN_FLIGHT)
        return able

    def _best(self, able: list[View], percent: Mapping[int, int]) -> list[View]:
        """Return the first in the order of match and load that is not too busy, and all equal to it."""
        loads = [one.in_flight for one in able]
        spread = stdev(loads) if len(loads) > 1 else 0.0
        limit = mean(loads) + self.settings.prefix_cache_standard_deviation_factor * spread
        fit = [one for one in able if one.number in percent and one.in_flight <= limit]
        ordered = {one.number: (-percent[one.number], one.in_flight) for one in fit}
        first = min(ordered.values(), default=(0, 0))
        return [one for one in fit if ordered[one.number] == first]


class LeastKvCache(Router):
    """The least used KV pool as last reported; of equal ones the last."""

    @property
    def reads(self) -> frozenset[Signal]:
        """The use of KV pools."""
        return frozenset({Signal.KV_USED})

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the last one with the least use."""
        used = {one.number: one.kv_used for one in healthy(replicas)}
        lowest, best = math.inf, -1
        for number, value in used.items():
            if value <= lowest:
                lowest, best = value, number
        return Ranking({best: 1.0}, "least KV cache", {"kv_used": used})


class AiBrix(Several):
    """The strategies of AIBrix's gateway."""

    Settings = AiBrixSettings
    settings: AiBrixSettings
    summary: ClassVar[str] = (
        "AIBrix: by cached prefix unless busy, fewest requests, least KV cache, power of two, random"
    )
    checked: ClassVar[str] = "source (commit e3e10f9)"
    ages: ClassVar[Mapping[Signal, Age]] = {Signal.KV_USED: Age(every_s=0.05)}
    recovery: ClassVar[Recovery] = Recovery(retries=0, source="AIBrix: not known")

    def made(self) -> Router:
        """Return the policy of `routing_strategy`."""
        name = self.settings.routing_strategy
        if name == "prefix-cache":
            return PrefixCache(self.settings, self.random)
        if name == "least-request":
            return LeastOutstanding(TieSettings(ties="random"), self.random)
        if name == "least-kv-cache":
            return LeastKvCache(NoKeys(), self.random)
        if name == "power-of-two":
            return PowerOfTwo(PowerSettings(choices=2, by="in_flight"), self.random)
        return RandomChoice(NoKeys(), self.random)
