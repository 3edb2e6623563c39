"""Requests to the replica that has most of their prompt, as long as it is not far busier than others."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, Signal, View, evenly, healthy
from simqueue.routing.loads import IN_FLIGHT, least, measured, one_of
from simqueue.routing.sent import Sent
from simqueue.settings import Count, Settings


class PrefixSettings(Settings):
    """Keys of `PrefixAffinity`."""

    index: Literal["cache", "tree"] = Field(
        "cache",
        description="how the router knows what a replica has. cache: from its prefix cache, as it is now; tree: from "
        "the router's own record of the prompts that it sent there",
    )
    threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="least share of the prompt that a replica must have to be preferred",
    )
    balance_abs: Count | None = Field(
        64,
        ge=0,
        description="with balance_rel: loads are unequal if the most requests in flight exceed the fewest by more than "
        "this; then the fewest in flight count alone. null: loads are never unequal",
        json_schema_extra={"unit": "requests"},
    )
    balance_rel: float = Field(
        1.5, ge=1, description="with balance_abs: and exceed this many times the fewest; 1: balance_abs alone counts"
    )
    tree_tokens: Count | None = Field(
        None,
        ge=1,
        description="tokens that the record keeps of each replica, the least recently used leave first; null: as many "
        "as its KV pool holds",
        json_schema_extra={"unit": "tokens"},
    )


class _Found(NamedTuple):
    best: list[View]
    reason: str
    cached: dict[int, int]


class PrefixAffinity(Router):
    """The replica with most of the prompt, the least outstanding of several; or the least outstanding of all.

    The latter counts alone where no replica has enough of the prompt, or where loads are too unequal. The rule and the
    numbers of balance are those of sglang-router (`cache_aware`) without its other rules.
    """

    Settings = PrefixSettings
    settings: PrefixSettings
    summary: ClassVar[str] = "the replica that has most of the prompt in its prefix cache, unless it is too busy"
    checked: ClassVar[str] = "the rule by hand, hits of conversations"

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._sent = Sent(self.settings.tree_tokens) if self.settings.index == "tree" else None

    @property
    def reads(self) -> frozenset[Signal]:
        """The prefix caches, unless it has a record of its own."""
        return frozenset() if self._sent else frozenset({Signal.CACHED})

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for the best."""
        able = healthy(replicas)
        found = self._found(request, able)
        scores = {"in_flight": measured(able, IN_FLIGHT)}
        if found.cached:
            scores["cached_tokens"] = {number: float(tokens) for number, tokens in found.cached.items()}
        return Ranking(evenly(found.best), found.reason, scores)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw one of the best."""
        found = self._found(request, healthy(replicas))
        return Choice(one_of(self.random, found.best).number, found.reason)

    def _found(self, request: Request, able: list[View]) -> _Found:
        if self._unequal(able):
            return _Found(least(able, IN_FLIGHT), "unequal loads", {})
        cached = self._cached(request, able)
        most = max(cached.values())
        if most == 0 or most < self.settings.threshold * request.prompt_tokens:
            return _Found(least(able, IN_FLIGHT), "miss", cached)
        having = [one for one in able if cached[one.number] == most]
        return _Found(least(having, IN_FLIGHT), "hit", cached)

    def _unequal(self, able: list[View]) -> bool:
        if self.settings.balance_abs is None:
            return False
        loads = [one.in_flight for one in able]
        most, fewest = max(loads), min(loads)
        return most - fewest > self.settings.balance_abs and most > self.settings.balance_rel * fewest

    def _cached(self, request: Request, able: list[View]) -> dict[int, int]:
        if self._sent is None:
            return {one.number: one.cached_tokens(request) for one in able}
        sent = self._sent.tokens(request)
        return {one.number: sent.get(one.number, 0) for one in able}

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Write down what is sent."""
        if self._sent is not None:
            self._sent.add(request, replica)

    def joined(self, replica: View, now_s: float) -> None:
        """Forget what was sent: the cache is empty."""
        self.left(replica, now_s)

    def left(self, replica: View, now_s: float) -> None:
        """Forget what was sent."""
        if self._sent is not None:
            self._sent.forget(replica.number)
