"""The contract of KV caches: questions about blocks, then actions on their number.

A pool is a number of blocks. How many a request holds follows from the tokens it has in the cache, so nothing is
stored per request and taking or giving back is one addition, whatever the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from simqueue.errors import RunError
from simqueue.request import Request


class KVCache(ABC):
    """A pool of equal blocks.

    Parameters
    ----------
    blocks : int
        Usable blocks.
    block_size : int
        Tokens in a block.
    watermark : float
        Share of the pool that admissions leave free while something runs.
    """

    grows: bool
    """Whether a request takes more blocks as its context grows."""

    def __init__(self, blocks: int, block_size: int, watermark: float = 0.0) -> None:
        self.total = blocks
        self.block_size = block_size
        self.watermark_blocks = int(watermark * blocks)
        self.free = blocks
        self._least_free = blocks

    @property
    def used(self) -> int:
        """Blocks in use now."""
        return self.total - self.free

    @property
    def peak_used(self) -> int:
        """The most blocks that were ever in use."""
        return self.total - self._least_free

    def blocks_for(self, tokens: int) -> int:
        """Return how many blocks hold `tokens` tokens."""
        return -(-tokens // self.block_size)

    @abstractmethod
    def held(self, request: Request, tokens: int) -> int:
        """Return how many blocks `request` holds with `tokens` (>= 1) of its tokens in the cache."""

    def growth(self, request: Request, before: int, after: int) -> int:
        """Return how many more blocks it takes to go from `before` (0: not admitted yet) to `after` tokens."""
        return self.held(request, after) - (self.held(request, before) if before else 0)

    def peak_tokens(self, request: Request) -> int:
        """Return the most tokens of `request` that are ever in the cache: the last output token is never fed."""
        return request.prompt_tokens + request.output_tokens - 1

    def fits_ever(self, request: Request) -> bool:
        """Return whether the empty pool could hold `request` to its end."""
        return self.held(request, self.peak_tokens(request)) <= self.total

    def can_admit(self, blocks: int, *, others_run: bool) -> bool:
        """Return whether `blocks` can go to a newcomer; the watermark counts while others run."""
        return blocks + (self.watermark_blocks if others_run else 0) <= self.free

    def take(self, blocks: int) -> None:
        """Take blocks out of the pool. Precondition: ``0 <= blocks <= free``."""
        if not 0 <= blocks <= self.free:
            raise RunError(f"KV cache: cannot take {blocks} blocks, {self.free} of {self.total} are free")
        self.free -= blocks
        self._least_free = min(self._least_free, self.free)

    def give_back(self, blocks: int) -> None:
        """Put blocks back. Precondition: ``0 <= blocks <= used``."""
        if not 0 <= blocks <= self.used:
            raise RunError(f"KV cache: cannot give back {blocks} blocks, {self.used} are in use")
        self.free += blocks

    def check(self, held_blocks: int) -> None:
        """Compare the pool with `held_blocks`, what its holders have when each one is asked."""
        if self.free + held_blocks != self.total:
            raise RunError(
                f"KV cache: {self.free} free + {held_blocks} held blocks differ from the pool's {self.total}"
            )
