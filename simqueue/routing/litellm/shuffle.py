"""simple-shuffle: at random, by weights."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.request import Request
from simqueue.routing.base import Ranking, Router, View, evenly, healthy
from simqueue.routing.litellm.keys import LiteLlmSettings


class Shuffle(Router):
    """A replica at random. Weights are the first of weight, rpm and tpm that any replica has, else those of the fleet.

    A replica without the value that the others have is never chosen.
    """

    settings: LiteLlmSettings
    is_independent = True

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return chances in proportion to the weights."""
        able = healthy(replicas)
        for name in ("weight", "rpm", "tpm") if self.settings.litellm_params else ():
            given = {one.number: getattr(self.settings.of(one), name) for one in able}
            if any(value is not None for value in given.values()):
                return _by({number: value or 0 for number, value in given.items()}, able, name)
        return _by({one.number: one.weight for one in able}, able, "weight")


def _by(weights: dict[int, float], able: Sequence[View], reason: str) -> Ranking:
    total = sum(weights.values())
    if total == 0:
        return Ranking(evenly(able), "random")
    return Ranking({number: weight / total for number, weight in weights.items() if weight > 0}, reason)
