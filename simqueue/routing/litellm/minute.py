"""Tokens and requests in the present minute of the clock, and limits of them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from simqueue.routing.litellm.keys import Deployment

_MINUTE_S = 60.0


class Minute:
    """Counts per replica that begin again with each minute of the clock."""

    def __init__(self) -> None:
        self._minute = 0
        self._tokens: dict[int, int] = {}
        self._requests: dict[int, int] = {}

    def tokens(self, now_s: float) -> Mapping[int, int]:
        """Return the tokens of this minute, by replica; those without any are left out."""
        return self._tokens if _minute(now_s) == self._minute else {}

    def requests(self, now_s: float) -> Mapping[int, int]:
        """Return the requests of this minute, by replica."""
        return self._requests if _minute(now_s) == self._minute else {}

    def add(self, number: int, now_s: float, *, tokens: int = 0, requests: int = 0) -> None:
        """Count tokens or requests of a replica."""
        minute = _minute(now_s)
        if minute != self._minute:
            self._minute, self._tokens, self._requests = minute, {}, {}
        self._tokens[number] = self._tokens.get(number, 0) + tokens
        self._requests[number] = self._requests.get(number, 0) + requests


def limits(deployment: Deployment) -> tuple[float, float]:
    """Return the most tokens and requests in a minute."""
    tpm, rpm = deployment.tpm, deployment.rpm
    return math.inf if tpm is None else tpm, math.inf if rpm is None else rpm


def _minute(now_s: float) -> int:
    return int(now_s // _MINUTE_S)
