"""Admission control at arrival: requests that can never be served are rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simqueue.kvcache.base import KVCache
from simqueue.request import Request
from simqueue.steptime.base import made_again


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Which requests are rejected at arrival, and how long outputs can get.

    Attributes
    ----------
    max_model_len : int or None
        Most tokens (prompt and output together) of a request; None: no limit.
    reject_oversized : bool
        Whether a request that needs more blocks than the whole pool is rejected. If not, it waits for ever, as it
        does in engines without such a check.
    cuts_output : bool
        Whether an output that would pass `max_model_len` ends there. If not, its request is rejected.
    """

    max_model_len: int | None = None
    reject_oversized: bool = True
    cuts_output: bool = False

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)

    def output_tokens(self, request: Request) -> int:
        """Return how many tokens are made for `request`. Precondition: it is not rejected."""
        if self.max_model_len is None or not self.cuts_output:
            return request.output_tokens
        return min(request.output_tokens, self.max_model_len - request.prompt_tokens)

    def rejection(self, request: Request, kv: KVCache) -> str | None:
        """Return why `request` is rejected, or None if it can be queued."""
        least_output = 1 if self.cuts_output else request.output_tokens
        if self.max_model_len is not None and request.prompt_tokens + least_output > self.max_model_len:
            return f"{_lengths(request)} is longer than max_model_len {self.max_model_len}"
        if self.reject_oversized:
            peak_tokens = request.prompt_tokens + self.output_tokens(request) - 1
            blocks = kv.held(request, peak_tokens)
            if blocks > kv.total:
                return f"{_lengths(request)} needs {blocks} blocks, the pool has {kv.total}"
        return None


def _lengths(request: Request) -> str:
    return f"prompt {request.prompt_tokens} + output {request.output_tokens}"
