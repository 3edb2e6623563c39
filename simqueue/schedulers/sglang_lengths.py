"""How long prompts and answers can be in SGLang."""

from __future__ import annotations

from simqueue.kvcache.radix import RadixKVCache
from simqueue.request import Request
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.sglang_rules import SglangRules

MOST_REQUESTS = 4096
LEAST_REQUESTS = 2048
REQUESTS_PER_CONTEXT = 512
"""Rows of the engine's table of requests: so many for each context of the longest request, within limits."""
MARGIN_TOKENS = 5
"""A prompt has to be shorter than the longest request by this."""


class SglangLengths:
    """Limits of one server.

    Parameters
    ----------
    kv : RadixKVCache
    limits : RequestLimits
        Its ``max_model_len`` is the engine's context_length.
    rules : SglangRules
    """

    def __init__(self, kv: RadixKVCache, limits: RequestLimits, rules: SglangRules) -> None:
        self._page = kv.block_size
        self._pool = kv.total * kv.block_size
        self._rules = rules
        self._rejects = limits.reject_oversized
        self._context = limits.max_model_len
        longest = self._pool - 1
        self.longest = longest if limits.max_model_len is None else min(longest, limits.max_model_len - 1)

    def most_requests(self, given: int | None) -> int:
        """Return how many requests can run: the flag, by default what the engine makes of the size of its pool."""
        if given is not None:
            return given
        rows = LEAST_REQUESTS
        if self._context is not None:
            rows = max(int(self._pool / self._context * REQUESTS_PER_CONTEXT), LEAST_REQUESTS)
        return max(1, min(self._pool // 2, rows, MOST_REQUESTS))

    def prompt_tokens(self, request: Request) -> int:
        """Return how many tokens of a prompt are taken."""
        if self._rules.cuts_prompts:
            return min(request.prompt_tokens, self.longest - MARGIN_TOKENS)
        return request.prompt_tokens

    def max_new_tokens(self, request: Request) -> int:
        """Return the limit of the answer, as the engine clips it; below 1, the request can never be admitted."""
        prompt = self.prompt_tokens(request)
        most = min(request.most_output_tokens, self.longest - prompt - 1)
        if self._rules.clips_to_pool:
            paged = -(-prompt // self._page) * self._page
            most = min(most, self._pool - paged - self._page - 1)
        return max(0, most)

    def due_tokens(self, request: Request) -> int:
        """Return how many tokens are made."""
        return max(1, min(request.output_tokens, self.max_new_tokens(request)))

    def rejection(self, request: Request) -> str | None:
        """Return why a request can never be served, or None."""
        least = MARGIN_TOKENS + 1
        prompt = request.prompt_tokens
        if self._rules.cuts_prompts:
            return (
                None if self.longest > least else f"the longest request has {self.longest} tokens, at least {least + 1}"
            )
        if prompt >= self.longest - MARGIN_TOKENS:
            return f"prompt {prompt} is not shorter than {self.longest - MARGIN_TOKENS}, what a prompt can have here"
        if self._rejects and not self.max_new_tokens(request):
            return f"prompt {prompt} leaves no page of the pool of {self._pool} tokens for an answer"
        return None
