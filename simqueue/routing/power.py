"""Power of d choices: the least loaded of a few replicas that are drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from random import Random
from typing import ClassVar

from pydantic import Field

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, Signal, View, healthy
from simqueue.routing.loads import LOADS, LoadName, measured, some_healthy
from simqueue.settings import Count, Settings


class PowerSettings(Settings):
    """Keys of `PowerOfTwo`."""

    choices: Count = Field(2, ge=1, description="replicas that are drawn and compared, all different")
    by: LoadName = Field(
        "in_flight",
        description="what is compared. in_flight, in_flight_prompt_tokens, in_flight_tokens: the router's own counts; "
        "running, waiting, running_and_waiting, kv_used, tokens: as last reported by the engine",
    )


class PowerOfTwo(Router):
    """The least loaded of `choices` different healthy replicas; of equal ones the first that was drawn."""

    Settings = PowerSettings
    settings: PowerSettings
    summary: ClassVar[str] = "the less loaded of two (or more) replicas that are drawn at random"
    spread = "by load"
    checked: ClassVar[str] = "theory: waits of a chain of the queues, limit of many replicas"

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._load = LOADS[self.settings.by]

    @property
    def reads(self) -> frozenset[Signal]:
        """The signals that the load is made of."""
        return self._load.reads

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the exact chances: those of equal loads are equal, because the order of a draw is random."""
        loads = measured(healthy(replicas), self._load)
        drawn = min(self.settings.choices, len(loads))
        ordered = sorted(loads, key=lambda number: loads[number])
        all_draws = math.comb(len(ordered), drawn)
        chances: dict[int, float] = {}
        rest = len(ordered)
        for _, equal in groupby(ordered, key=lambda number: loads[number]):
            numbers = list(equal)
            # One of these is chosen if all drawn are at least as loaded, and not all more.
            draws = math.comb(rest, drawn) - math.comb(rest - len(numbers), drawn)
            if draws:
                chances |= dict.fromkeys(numbers, draws / all_draws / len(numbers))
            rest -= len(numbers)
        return Ranking(chances, self._reason(), {self.settings.by: loads})

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw some and compare them."""
        best = min(some_healthy(self.random, replicas, self.settings.choices), key=self._load.of)
        return Choice(best.number, self._reason())

    def _reason(self) -> str:
        return f"best of {self.settings.choices}"
