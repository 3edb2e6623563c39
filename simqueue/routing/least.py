"""Routers that choose the healthy replica with the least load: each class is a load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from random import Random
from typing import ClassVar, Literal

from pydantic import Field

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, Signal, View, evenly, healthy
from simqueue.routing.loads import LOADS, least, measured, one_of
from simqueue.settings import Settings


class TieSettings(Settings):
    """Keys of routers that compare loads."""

    ties: Literal["random", "first"] = Field(
        "random",
        description="which of several replicas with the least load: random, or the first in the router's list",
    )


class Least(Router):
    """The healthy replica with the least load.

    Parameters
    ----------
    settings : TieSettings
    random : Random
    """

    Settings: ClassVar[type[Settings]] = TieSettings
    settings: TieSettings
    reason: ClassVar[str] = "least loaded"
    spread = "by load"

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._load = LOADS[self._load_name()]

    @abstractmethod
    def _load_name(self) -> str:
        """Return a key of `LOADS`."""
        raise NotImplementedError

    @property
    def reads(self) -> frozenset[Signal]:
        """The signals that the load is made of."""
        return self._load.reads

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for those with the least load, or the first of them."""
        able = healthy(replicas)
        scores = {self._load_name(): measured(able, self._load)}
        return Ranking(evenly(self._candidates(able)), self.reason, scores)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw one of those with the least load."""
        return Choice(one_of(self.random, self._candidates(healthy(replicas))).number, self.reason)

    def _candidates(self, able: Sequence[View]) -> list[View]:
        best = least(able, self._load)
        return best if self.settings.ties == "random" else best[:1]


class LeastOutstanding(Least):
    """The fewest requests in flight, as the router counts them."""

    summary: ClassVar[str] = "the replica with the fewest requests in flight (the router's own count)"
    checked: ClassVar[str] = "chances by hand"

    def _load_name(self) -> str:
        return "in_flight"


class LeastTokensSettings(TieSettings):
    """Keys of `LeastTokens`."""

    count: Literal["prompt", "all"] = Field(
        "prompt",
        description="tokens of a request that count while it is in flight: prompt, or all (the output too, as if the "
        "router knew its length)",
    )


class LeastTokens(Least):
    """The fewest tokens in flight, as the router counts them."""

    Settings = LeastTokensSettings
    settings: LeastTokensSettings
    summary: ClassVar[str] = "the replica with the fewest tokens in flight (the router's own count)"
    checked: ClassVar[str] = "chances by hand"

    def _load_name(self) -> str:
        return "in_flight_prompt_tokens" if self.settings.count == "prompt" else "in_flight_tokens"


class LeastKv(Least):
    """The least used KV pool, as the engine reports it."""

    summary: ClassVar[str] = "the replica whose KV pool is used least, as last reported"
    checked: ClassVar[str] = "chances by hand"

    def _load_name(self) -> str:
        return "kv_used"


class JoinShortestQueue(Least):
    """The fewest running and waiting requests, as the engine reports them."""

    summary: ClassVar[str] = "the replica with the fewest running and waiting requests, as last reported"
    checked: ClassVar[str] = "theory: waits of a chain of the queues"

    def _load_name(self) -> str:
        return "running_and_waiting"
