"""simple-shuffle: at random, by weights."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.request import Request
from simqueue.routing.base import Ranking, Router, View, healthy
from simqueue.routing.litellm.keys import LiteLlmSettings


class Shuffle(Router):
    """A replica at random. Weights are the first of weight, rpm and tpm that any replica has, else those of the fleet.

    A replica without the value that others have is never chosen. Values that are all 0 count as none.
    """

    settings: LiteLlmSettings
    is_independent = True

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return chances in proportion to the weights."""
        able = healthy(replicas)
        for name in ("weight", "rpm", "tpm") if self.settings.litellm_params else ():
            given = {one.number: getattr(self.settings.of(one), name) for one in able}
            if any(given.values()):
                return _by({number: value or 0 for number, value in given.items()}, name)
        return _by({one.number: one.weight for one in able}, "weight")


def _by(weights: dict[int, float], reason: str) -> Ranking:
    total = sum(weights.values())
    return Ranking({number: weight / total for number, weight in weights.items() if weight > 0}, reason)
