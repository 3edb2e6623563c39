"""What a prefill of SGLang may take: tokens of the pool, now and later, and tokens of the step."""

from __future__ import annotations

from typing import Final

from simqueue.kvcache.radix import RadixKVCache
from simqueue.schedulers.sglang_batch import DecodeBatch, total_left
from simqueue.schedulers.sglang_rules import SglangRules

CLOSE: Final = 1e-6
"""Tokens; amounts that are nearer to each other are compared as the engine adds them up, request by request."""


class Budget:
    """The budgets of one attempt at a prefill.

    The reserve of running requests is a sum of counters times the ratio. The engine adds up one number for each
    request, which can differ in the last digit. Where that digit decides, and only there, it is done in the same way.

    Parameters
    ----------
    kv : RadixKVCache
    running : DecodeBatch
    ratio : float
        The engine's new_token_ratio.
    rules : SglangRules
    step_tokens, chunk_tokens : int, int or None
        Tokens that are left of max_prefill_tokens and of chunked_prefill_size; None: without chunks.
    mixed : int
        Decodes that share the step.

    Attributes
    ----------
    step, chunk : int, int or None
        What is left of `step_tokens` and `chunk_tokens`.
    """

    def __init__(
        self,
        kv: RadixKVCache,
        running: DecodeBatch,
        ratio: float,
        rules: SglangRules,
        step_tokens: int,
        chunk_tokens: int | None,
        mixed: int,
    ) -> None:
        self._kv = kv
        self._running = running
        self._ratio = ratio
        self._rules = rules
        self._mixed = mixed
        self.step = step_tokens - mixed
        self.chunk = None if chunk_tokens is None else chunk_tokens - mixed
        self._start = kv.usable
        self._stores = rules.gate == "whole"
        self._taken = 0
        self._charges: list[float] = []
        scaled, fixed = running.reserved()
        if not rules.fixed_reserve:
            scaled, fixed = scaled + fixed, 0
        self._exact = not scaled
        self._value = 0.0
        self._begin(scaled * ratio + fixed)

    def _begin(self, reserve: float) -> None:
        """Set what is reserved for running requests, and charge again all that was charged since."""
        self._value = (self._start - self._mixed) - reserve if self._stores else self._mixed + reserve
        for charge in self._charges:
            self._value += charge

    def make_exact(self) -> None:
        """Add up the reserve of running requests one by one."""
        if not self._exact:
            self._exact = True
            self._begin(total_left(self._running, self._ratio, fixed=self._rules.fixed_reserve))

    @property
    def offset(self) -> float:
        """What is reserved and charged, as the engine counts it (old versions: what is left)."""
        return self._value

    def total(self, near: float = 0.0) -> float:
        """Return how many tokens are left for all time, exactly if they are close to `near`."""
        total = self._value if self._stores else self._kv.usable - self._value
        if not self._exact and abs(total - near) < CLOSE:
            self.make_exact()
            total = self._value if self._stores else self._kv.usable - self._value
        return total

    def whole_tokens(self) -> int:
        """Return the whole tokens of `total`."""
        return int(self.total(round(self.total())))

    def now(self) -> int:
        """Return how many tokens are left for contexts that are computed at once."""
        if self._stores:
            return self._start - self._mixed - self._taken
        return self._kv.usable - self._mixed - self._taken

    def locked(self, tokens: int) -> None:
        """Learn that `tokens` more tokens of the tree are held (negative: fewer)."""
        if self._stores:
            self._charge(-tokens)

    def take(self, context: int, later: int) -> None:
        """Charge a request that computes `context` tokens, and may make `later` tokens."""
        page = self._kv.block_size if self._rules.gate == "page" else 0
        self.step -= context
        if self.chunk is not None:
            self.chunk -= context
        self._taken += context + page
        self._charge(-(context + later) if self._stores else context + page + later)

    def give_back(self, reserve: float) -> None:
        """Return what was reserved for a request that runs no more."""
        self._charge(-reserve)

    def _charge(self, amount: float) -> None:
        self._charges.append(amount)
        self._value += amount

    def is_spent(self) -> bool:
        """Return whether the tokens of the step are used up."""
        return self.step <= 0 or (self.chunk is not None and self.chunk <= 0)

    def is_full(self) -> bool:
        """Return whether the pool has no token left."""
        return self.total() <= 0 or self.now() <= 0
