"""Refusal at the door: requests that no amount of waiting could serve."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.kvcache.base import KVCache
from simqueue.request import Request


@dataclass(frozen=True, slots=True)
class Door:
    """What is refused at arrival.

    Attributes
    ----------
    max_model_len : int or None
        Most tokens (prompt and output together) a request may have; None: no limit.
    refuse_oversized : bool
        Whether a request that needs more blocks than the whole pool is refused; if not it waits for ever, as it
        does in engines without such a check.
    """

    max_model_len: int | None = None
    refuse_oversized: bool = True

    def refusal(self, request: Request, kv: KVCache) -> str | None:
        """Return why `request` is refused, or None if it may wait for a seat."""
        asked = f"prompt {request.prompt_tokens} + output {request.output_tokens}"
        if self.max_model_len is not None and request.prompt_tokens + request.output_tokens > self.max_model_len:
            return f"{asked} is longer than max_model_len {self.max_model_len}"
        if self.refuse_oversized and not kv.fits_ever(request):
            return f"{asked} needs {kv.held(request, kv.peak_tokens(request))} blocks, the pool has {kv.total}"
        return None
