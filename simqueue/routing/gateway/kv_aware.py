"""`kv_aware` of vllm-router without KV events: the prompt tokens and requests in flight."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import Ranking, View, healthy
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.policy import Policy
from simqueue.settings import Settings


class KvAware(Policy):
    """The worker with the least work in front of the prompt, the first on a tie.

    A request in flight counts with its prompt tokens, and again with those of this prompt or of the mean prompt
    before it, whichever is less.
    """

    def __init__(self, settings: Settings, random: Random, front: Front) -> None:
        super().__init__(settings, random, front)
        self._requests = 0
        self._prompt_tokens = 0

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker with the lowest cost."""
        each = min(request.prompt_tokens, self._prompt_tokens / self._requests if self._requests else 0.0)
        costs = {one.number: one.in_flight_prompt_tokens + one.in_flight * each for one in healthy(replicas)}
        return Ranking({min(costs, key=costs.__getitem__): 1.0}, "lowest cost", {"cost": costs})

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Count the prompt."""
        self._requests += 1
        self._prompt_tokens += request.prompt_tokens
