"""latency-based-routing: the lowest mean time of the last requests."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, View, healthy
from simqueue.routing.litellm.keys import LiteLlmSettings
from simqueue.routing.litellm.minute import Minute, limits
from simqueue.routing.litellm.usage import OVER


class LowestLatency(Router):
    """Those with the lowest mean of their last samples, or close to it, alike.

    A sample is the time of a request per token of its answer. If clients ask for streams, the time to the first token
    is compared instead where there are such samples. A replica without samples counts as 0 s, so it is tried first.
    Once it was looked at while another one had samples, it keeps this 0 s as a sample. Replicas over their limits of
    tokens or requests that ended in this minute are passed over; if all are, the request is refused.
    """

    settings: LiteLlmSettings

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._per_token: dict[int, deque[float]] = {}
        self._first_token: dict[int, deque[float]] = {}
        self._forgotten_at_s = math.inf
        self._began: dict[str, tuple[float, float | None]] = {}
        self._looked_at: list[int] = []
        self._minute = Minute()

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for those whose mean is low enough."""
        self._looked_at = [one.number for one in healthy(replicas)]
        within = [one.number for one in healthy(replicas) if self._fits(one, request, now_s)]
        if not within:
            return Ranking({}, OVER)
        means = {number: self._mean(number, now_s) for number in within}
        lowest = min(means.values())
        limit = lowest + self.settings.routing_strategy_args.lowest_latency_buffer * lowest
        best = [number for number, mean in means.items() if mean <= limit]
        return Ranking(dict.fromkeys(best, 1 / len(best)), "lowest latency", {"mean_s": means})

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw one of them, or refuse."""
        choice = super().choose(request, replicas, now_s)
        return choice._replace(refused=choice.replica is None)

    def looked(self, now_s: float) -> None:
        """Let the replicas of the last `rank` keep a sample of 0 s if they have none and others do."""
        self._forget(now_s)
        for number in self._looked_at if self._per_token else ():
            if number not in self._per_token:
                self._per_token[number] = self._samples(0.0)

    def ended(
        self, number: int, now_s: float, per_token_s: float, first_token_s: float | None = None, tokens: int = 0
    ) -> None:
        """Add the samples of a request with so many tokens, its prompt included, that has ended at a replica."""
        self._forget(now_s)
        self._minute.add(number, now_s, tokens=tokens, requests=1)
        self._per_token.setdefault(number, self._samples()).append(per_token_s)
        if first_token_s is not None:
            self._first_token.setdefault(number, self._samples()).append(first_token_s)
        self._forgotten_at_s = now_s + self.settings.routing_strategy_args.ttl

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Start the clock of a request."""
        self.looked(now_s)
        self._began[request.request_id] = (now_s, None)

    def first_token(self, request: Request, replica: View, now_s: float) -> None:
        """Note the time to the first token."""
        began_s, _ = self._began[request.request_id]
        self._began[request.request_id] = (began_s, now_s - began_s)

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Add its samples if it was served."""
        began_s, first_token_s = self._began.pop(request.request_id)
        if served and tokens:
            stream_s = first_token_s if self.settings.stream else None
            self.ended(replica.number, now_s, (now_s - began_s) / tokens, stream_s, request.prompt_tokens + tokens)

    def left(self, replica: View, now_s: float) -> None:
        """Forget a replica that is gone."""
        self._per_token.pop(replica.number, None)
        self._first_token.pop(replica.number, None)

    def _mean(self, number: int, now_s: float) -> float:
        if now_s >= self._forgotten_at_s:
            return 0.0
        firsts, percentile = self._first_token.get(number), self.settings.routing_strategy_args.ttft_percentile
        if self.settings.stream and firsts and percentile is not None:
            return sorted(firsts)[math.ceil(len(firsts) * percentile) - 1]
        samples = firsts if self.settings.stream and firsts else self._per_token.get(number)
        return sum(samples) / len(samples) if samples else 0.0

    def _fits(self, replica: View, request: Request, now_s: float) -> bool:
        if not self.settings.litellm_params:
            return True
        most_tokens, most_requests = limits(self.settings.of(replica))
        tokens = self._minute.tokens(now_s).get(replica.number, 0)
        requests = self._minute.requests(now_s).get(replica.number, 0)
        return tokens + request.prompt_tokens <= (most_tokens or math.inf) and requests < (most_requests or math.inf)

    def _samples(self, *first: float) -> deque[float]:
        return deque(first, maxlen=self.settings.routing_strategy_args.max_latency_list_size)

    def _forget(self, now_s: float) -> None:
        if now_s >= self._forgotten_at_s:
            self._per_token.clear()
            self._first_token.clear()
            self._forgotten_at_s = math.inf
