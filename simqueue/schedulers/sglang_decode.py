"""Memory of SGLang's decode steps: whether the next one fits, and which requests are retracted if it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from simqueue.errors import RunError
from simqueue.kvcache.radix import RadixKVCache
from simqueue.schedulers.sglang_batch import DecodeBatch
from simqueue.schedulers.sglang_entry import Entry
from simqueue.schedulers.sglang_order import Order
from simqueue.schedulers.sglang_rules import SglangRules

RETRACT_STEPS: Final = 20
"""Decode steps for which a retraction makes room (SGLANG_RETRACT_DECODE_STEPS)."""
FIRST_RATIO: Final = 0.7
"""new_token_ratio at the beginning, with a conservativeness of 1 (SGLANG_INIT_NEW_TOKEN_RATIO)."""
LEAST_SHARE: Final = 0.14
"""Share of it below which it does not fall (SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR)."""
DECAY_STEPS: Final = 600
"""Decode steps in which it falls that far (SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS)."""


class Ratio:
    """The share of what running requests may still make that is reserved for them (new_token_ratio)."""

    def __init__(self, conservativeness: float) -> None:
        self.value = self._first = min(FIRST_RATIO * conservativeness, 1.0)
        self._least = min(self._first * LEAST_SHARE, 1.0)
        self._step = (self._first - self._least) / DECAY_STEPS

    def reset(self) -> None:
        """Begin again."""
        self.value = self._first

    def decay(self, steps: int) -> None:
        """Fall with decode steps."""
        value, least = self.value, self._least
        for _ in range(steps):
            if value == least:
                break
            value = max(value - self._step, least)
        self.value = value

    def after_retraction(self, kept: Sequence[Entry], *, plus_one: bool) -> None:
        """Become what the requests that stay have made of what they may make, and a few steps more."""
        made = sum([entry.made for entry in kept])
        most = sum([entry.max_new for entry in kept])
        self.value = min(1.0, (made + RETRACT_STEPS * len(kept)) / (most + plus_one))


class DecodeMemory:
    """The pages of decode steps.

    Parameters
    ----------
    kv : RadixKVCache
    rules : SglangRules
    order : Order
        Of waiting requests, for priorities.
    overlaps : bool
        Whether a step is planned while one runs.
    """

    def __init__(self, kv: RadixKVCache, rules: SglangRules, order: Order, *, overlaps: bool) -> None:
        self._kv = kv
        self._page = kv.block_size
        self._rules = rules
        self._order = order
        self._overlaps = overlaps

    def fits(self, batch: DecodeBatch) -> bool:
        """Evict what the next step needs; return whether it fits then."""
        pages = batch.pages_by_known(1 - self._overlaps) if self._rules.gate == "rest" else batch.new_pages()
        return self._kv.make_room(pages * self._page)

    def take(self, batch: DecodeBatch) -> None:
        """Take the pages of the next step."""
        pages = batch.new_pages()
        self._kv.make_room(batch.live * self._page)  # the engine makes room for one page each
        if self._kv.available < pages * self._page:
            raise RunError(
                f"sglang: a step with {batch.live} decodes finds {self._kv.available} free tokens; this version of the "
                "engine runs out of memory here, and stops"
            )
        self._kv.take_tokens(pages * self._page)
        batch.seen = batch.delivered
        batch.planned += 1

    def take_more(self, batch: DecodeBatch, steps: int) -> None:
        """Take the pages of further steps, which are there or can be evicted."""
        if self._page == 1:
            self._take_tokens(batch.live, steps)
        else:
            self._kv.take_tokens(batch.pages_of(steps) * self._page)
        batch.planned += steps
        batch.seen = batch.delivered + steps - 1

    def _take_tokens(self, live: int, steps: int) -> None:
        """Take one token for each of `live` requests in each step, and evict before a step that finds too few."""
        kv = self._kv
        while steps:
            ready = min(steps, kv.available // live)
            if ready:
                kv.take_tokens(ready * live)
                steps -= ready
            elif not kv.make_room(live):
                raise RunError(f"sglang: {steps} steps of {live} decodes find {kv.available} free tokens")

    def more_steps(self, batch: DecodeBatch, limit: int) -> int:
        """Return how many of the next `limit` steps can be taken without a retraction.

        What steps evict does not depend on when it is done, since nothing else uses the tree while they repeat. With
        larger pages, steps that evict are left out.
        """
        if self._page == 1:
            return batch.steps_within(self._kv.usable if self._kv.caches else self._kv.available, limit)
        pages = self._kv.available // self._page
        if not self._kv.tree.evictable:
            return batch.steps_within(pages, limit)
        # the engine evicts before a step unless there is a page for each request
        return min(limit, batch.steps_within(pages - batch.live, limit) + 1) if pages >= batch.live else 0

    def retract(self, batch: DecodeBatch, release: Callable[[Entry, int], None], by_priority: bool) -> list[Entry]:
        """Retract requests until the next step fits, but never the last one; the batch is left in another order.

        Parameters
        ----------
        batch : DecodeBatch
        release : callable
            Takes a request out of the batch and gives its tokens back; called with the number of those that stay.
        by_priority : bool
            Whether the least urgent goes first.

        Returns
        -------
        list of Entry
            In the order in which they were retracted: the fewest tokens made first, of these the longest prompt.
        """
        kept = sorted(batch, key=lambda entry: (entry.made, -entry.prompt), reverse=True)
        if by_priority:
            kept.sort(key=self._order.urgency)
        victims: list[Entry] = []
        while len(kept) > 1 and not (victims and self._fit(kept)):
            victims.append(kept.pop())
            release(victims[-1], len(kept))
        batch.sort(kept)
        return victims

    def _fit(self, kept: Sequence[Entry]) -> bool:
        if self._rules.retracts == "twenty":
            return self._kv.available >= RETRACT_STEPS * len(kept)
        shift = 1 - self._overlaps
        if self._page == 1:
            pages = len(kept)
        elif self._rules.gate == "rest":
            pages = sum([(entry.known - shift) % self._page == 0 for entry in kept])
        else:
            pages = sum([entry.kv_tokens % self._page == 0 for entry in kept])
        return self._kv.make_room(pages * self._page)
