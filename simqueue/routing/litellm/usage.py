"""usage-based-routing-v2: the fewest tokens in this minute, within limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, View, healthy
from simqueue.routing.litellm.keys import LiteLlmSettings

_MINUTE_S = 60.0
OVER = "all are over their limits"


class LowestUsage(Router):
    """Those with the fewest tokens in this minute of the clock, alike; the request is refused if all are over a limit.

    Tokens, prompts included, count when a request has been served, and requests when they are sent.
    """

    settings: LiteLlmSettings

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._minute = 0
        self._tokens: dict[int, int] = {}
        self._requests: dict[int, int] = {}

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for those with the fewest tokens that are within their limits."""
        is_now = _minute(now_s) == self._minute
        used = {one.number: self._tokens.get(one.number, 0) if is_now else 0 for one in healthy(replicas)}
        sent = self._requests if is_now else {}
        within = [one.number for one in healthy(replicas) if self._is_within(one, request, used, sent)]
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
        self._turn(now_s)
        self._requests[replica.number] = self._requests.get(replica.number, 0) + 1

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Count the tokens of a request that was served."""
        if served:
            self._turn(now_s)
            used = request.prompt_tokens + tokens
            self._tokens[replica.number] = self._tokens.get(replica.number, 0) + used

    def _is_within(self, replica: View, request: Request, used: dict[int, int], sent: dict[int, int]) -> bool:
        limits = self.settings.of(replica)
        most_tokens = math.inf if limits.tpm is None else limits.tpm
        most_requests = math.inf if limits.rpm is None else limits.rpm
        fits = used[replica.number] + request.prompt_tokens <= most_tokens
        return fits and sent.get(replica.number, 0) + 1 <= most_requests

    def _turn(self, now_s: float) -> None:
        minute = _minute(now_s)
        if minute != self._minute:
            self._minute, self._tokens, self._requests = minute, {}, {}


def _minute(now_s: float) -> int:
    return int(now_s // _MINUTE_S)
