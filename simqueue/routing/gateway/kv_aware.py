"""`kv_aware` of vllm-router without KV events: the prompt tokens and the requests in flight, multiplied."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.request import Request
from simqueue.routing.base import Ranking, View, healthy
from simqueue.routing.gateway.policy import Policy


class KvAware(Policy):
    """The worker with the least product of prompt tokens and requests in flight, this one included; the first on a tie.

    The rule was found from recorded decisions with prompts of very different lengths, all of which it reproduces.
    """

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker with the lowest cost."""
        costs = {
            one.number: float((one.in_flight_prompt_tokens + request.prompt_tokens) * (one.in_flight + 1))
            for one in healthy(replicas)
        }
        return Ranking({min(costs, key=costs.__getitem__): 1.0}, "lowest cost", {"cost": costs})
