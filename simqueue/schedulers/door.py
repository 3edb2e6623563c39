"""Refusal at the door: requests that no amount of waiting could serve."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.kvcache.base import KVCache
from simqueue.request import Request


@dataclass(frozen=True, slots=True)
class Door:
    """What is refused at arrival, and how long answers may get.

    Attributes
    ----------
    max_model_len : int or None
        Most tokens (prompt and output together) a request may have; None: no limit.
    refuse_oversized : bool
        Whether a request that needs more blocks than the whole pool is refused; if not it waits for ever, as it
        does in engines without such a check.
    cuts_output : bool
        Whether an answer that would pass `max_model_len` ends there; if not its request is refused.
    """

    max_model_len: int | None = None
    refuse_oversized: bool = True
    cuts_output: bool = False

    def output_tokens(self, request: Request) -> int:
        """Return how many tokens are made for `request`. Precondition: it is not refused."""
        if self.max_model_len is None or not self.cuts_output:
            return request.output_tokens
        return min(request.output_tokens, self.max_model_len - request.prompt_tokens)

    def refusal(self, request: Request, kv: KVCache) -> str | None:
        """Return why `request` is refused, or None if it may wait for a seat."""
        least_output = 1 if self.cuts_output else request.output_tokens
        if self.max_model_len is not None and request.prompt_tokens + least_output > self.max_model_len:
            return f"{_asked(request)} is longer than max_model_len {self.max_model_len}"
        if self.refuse_oversized:
            peak_tokens = request.prompt_tokens + self.output_tokens(request) - 1
            blocks = kv.held(request, peak_tokens)
            if blocks > kv.total:
                return f"{_asked(request)} needs {blocks} blocks, the pool has {kv.total}"
        return None


def _asked(request: Request) -> str:
    return f"prompt {request.prompt_tokens} + output {request.output_tokens}"
