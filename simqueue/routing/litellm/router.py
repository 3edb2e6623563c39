"""The router of LiteLLM."""

from __future__ import annotations

from typing import ClassVar

from simqueue.routing.base import Recovery, Router
from simqueue.routing.litellm.busy import LeastBusy
from simqueue.routing.litellm.keys import LiteLlmSettings
from simqueue.routing.litellm.latency import LowestLatency
from simqueue.routing.litellm.shuffle import Shuffle
from simqueue.routing.litellm.usage import LowestUsage
from simqueue.routing.several import Several

STRATEGIES: dict[str, type[Router]] = {
    "simple-shuffle": Shuffle,
    "least-busy": LeastBusy,
    "latency-based-routing": LowestLatency,
    "usage-based-routing-v2": LowestUsage,
}
"""By `routing_strategy`."""


class LiteLlm(Several):
    """The four strategies of LiteLLM."""

    Settings = LiteLlmSettings
    settings: LiteLlmSettings
    summary: ClassVar[str] = "LiteLLM: at random by weight, least busy, lowest latency, or lowest usage in the minute"
    checked: ClassVar[str] = "recorded decisions of 1.110.2; ttl: source"
    recovery: ClassVar[Recovery] = Recovery(retries=2, source="litellm 1.110.2")
    wants_first_tokens: ClassVar[bool] = True

    @property
    def names(self) -> list[str]:
        """Those of `litellm_params`."""
        return list(self.settings.litellm_params)

    def made(self) -> Router:
        """Return the strategy of `routing_strategy`."""
        return STRATEGIES[self.settings.routing_strategy](self.settings, self.random)
