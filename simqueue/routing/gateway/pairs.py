"""Prefill and decode apart: a worker of each pool for a request, each pool by a policy of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simqueue.request import Request
from simqueue.routing.base import Choice, Ranking, Router, View, healthy
from simqueue.routing.gateway.policy import Policy, evenly_among, least_loaded, loads
from simqueue.routing.gateway.settings import CacheAwareSettings
from simqueue.routing.gateway.single import exceeds


@dataclass(frozen=True, slots=True)
class PairRouter:
    """Chooses for both pools.

    Attributes
    ----------
    prefill, decode : Router
        Their policies, each with a state of its own.
    """

    prefill: Router
    decode: Router

    def rank(
        self, request: Request, prefill: Sequence[View], decode: Sequence[View], now_s: float
    ) -> tuple[Ranking, Ranking]:
        """Return the rankings of both pools; see `Router.rank`."""
        return self.prefill.rank(request, prefill, now_s), self.decode.rank(request, decode, now_s)

    def choose(
        self, request: Request, prefill: Sequence[View], decode: Sequence[View], now_s: float
    ) -> tuple[Choice, Choice]:
        """Return the choices of both pools; see `Router.choose`."""
        return self.prefill.choose(request, prefill, now_s), self.decode.choose(request, decode, now_s)

    def dispatched(self, request: Request, prefill: View, decode: View, now_s: float) -> None:
        """Learn where a request goes; see `Router.dispatched`."""
        self.prefill.dispatched(request, prefill, now_s)
        self.decode.dispatched(request, decode, now_s)


class LeastIfImbalanced(Policy):
    """`cache_aware` of sglang-router 0.3.2 for a pool: no tree; any healthy worker until loads are imbalanced."""

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the least loaded worker, the first on a tie, or equal chances."""
        keys = self.settings
        able = healthy(replicas)
        in_flight = [replica.in_flight for replica in able]
        if isinstance(keys, CacheAwareSettings) and exceeds(
            max(in_flight), min(in_flight), keys.balance_abs_threshold, keys.balance_rel_threshold
        ):
            return evenly_among([least_loaded(able)], "imbalanced", in_flight=loads(replicas))
        return evenly_among(able, "random", in_flight=loads(replicas))
