"""usage-based-routing-v2: the fewest tokens in this minute, within limits."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, View, healthy
from simqueue.routing.litellm.keys import LiteLlmSettings
from simqueue.routing.litellm.minute import Minute, limits

OVER = "all are over their limits"


class LowestUsage(Router):
    """Those with the fewest tokens in this minute of the clock, alike; the request is refused if all are over a limit.

    Tokens, prompts included, count when a request has been served, and requests when they are sent. A replica gets one
    request less than its limit, and at least one, as in the product.
    """

    settings: LiteLlmSettings

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._minute = Minute()

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for those with the fewest tokens that are within their limits."""
        tokens, sent = self._minute.tokens(now_s), self._minute.requests(now_s)
        able = healthy(replicas)
        used = {one.number: tokens.get(one.number, 0) for one in able}
        within = [one.number for one in able if self._fits(one, request, used[one.number], sent.get(one.number, 0))]
        fewest = min((used[number] for number in within), default=0)
        best = [number for number in within if used[number] == fewest]
        chances = dict.fromkeys(best, 1 / len(best)) if best else {}
        return Ranking(chances, "fewest tokens" if best else OVER, {"tokens": used})

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw one of them, or refuse."""
        choice = super().choose(request, replicas, now_s)
        return choice._replace(refused=choice.replica is None)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Count a request."""
        self._minute.add(replica.number, now_s, requests=1)

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Count the tokens of a request that was served."""
        if served:
            self._minute.add(replica.number, now_s, tokens=request.prompt_tokens + tokens)

    def _fits(self, replica: View, request: Request, used: int, sent: int) -> bool:
        most_tokens, most_requests = limits(self.settings.of(replica))
        if sent == 0:
            return used + request.prompt_tokens <= most_tokens and most_requests > 0
        return used + request.prompt_tokens <= most_tokens and sent + 1 < most_requests
