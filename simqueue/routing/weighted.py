"""Traffic in proportion to weights: at random, or spread as evenly as possible."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from pydantic import Field

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Ranking, Router, View, healthy
from simqueue.settings import Settings

_UNITS = 1_000_000
"""Smooth turns count weights in millionths, as whole numbers: rounding would let equal replicas change places."""


class WeightedSettings(Settings):
    """Keys of `Weighted`."""

    smooth: bool = Field(
        False, description="whether turns are spread evenly, as by nginx, and not drawn at random; both by weight"
    )


class Weighted(Router):
    """A healthy replica in proportion to its weight.

    The smooth turns are those of nginx: each replica gains its weight, the one that has gained most is chosen (the
    first of equal ones) and loses the weight of all.
    """

    Settings = WeightedSettings
    settings: WeightedSettings
    summary: ClassVar[str] = "a healthy replica in proportion to its weight, at random or in smooth turns"
    spread = "shares by weight"
    checked: ClassVar[str] = "turns of nginx, chances by hand"
    is_independent = True

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._gained: dict[int, int] = {}
        self._asked_about: list[View] = []

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return chances in proportion to weights, or the replica whose turn it is."""
        able = healthy(replicas)
        if self.settings.smooth:
            return self._turn(able)
        total = sum(replica.weight for replica in able)
        return Ranking({replica.number: replica.weight / total for replica in able}, "weight")

    def _turn(self, able: list[View]) -> Ranking:
        self._asked_about = able  # `dispatched` needs them, and is not told
        gained = {one.number: self._gained.get(one.number, 0) + _units(one) for one in able}
        best = max(gained, key=lambda number: gained[number])
        return Ranking({best: 1.0}, "turn", {"gained": {number: n / _UNITS for number, n in gained.items()}})

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Let all gain their weights, and the chosen one lose the sum."""
        for one in self._asked_about:
            self._gained[one.number] = self._gained.get(one.number, 0) + _units(one)
        lost = sum(map(_units, self._asked_about))
        self._gained[replica.number] = self._gained.get(replica.number, 0) - lost
        self._asked_about = []

    def left(self, replica: View, now_s: float) -> None:
        """Forget a replica that is gone."""
        self._gained.pop(replica.number, None)


def _units(replica: View) -> int:
    return max(1, round(replica.weight * _UNITS))
