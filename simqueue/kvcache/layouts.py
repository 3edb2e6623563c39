"""How many blocks a request holds.

Paged: only the blocks that its tokens fill (Kwon et al., SOSP 2023). Contiguous: all that it can ever need is reserved
when it is admitted (Orca, FasterTransformer).
"""

from __future__ import annotations

from typing import Literal

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Request


@mypyc_attr(allow_interpreted_subclasses=True)
class PagedKVCache(KVCache):
    """Blocks are taken when a token needs a new one."""

    grows = True

    def held(self, request: Request, tokens: int) -> int:
        """Return how many blocks `tokens` tokens fill, the last one possibly in part."""
        return -(-tokens // self.block_size)

    def growth(self, request: Request, before: int, after: int) -> int:
        """Return how many more blocks are needed to go from `before` to `after` tokens."""
        size = self.block_size
        return -(-after // size) + -before // size


@mypyc_attr(allow_interpreted_subclasses=True)
class ContiguousKVCache(KVCache):
    """Reservation at admission, counted in blocks; fragmentation between reservations is not modelled.

    Parameters
    ----------
    reserve_tokens : int or None
        Tokens reserved for every request (the model's maximum), or None for each request's own
        prompt + output - 1.
    """

    grows = False

    def __init__(
        self, blocks: int, block_size: int, watermark_blocks: int = 0, reserve_tokens: int | None = None
    ) -> None:
        super().__init__(blocks, block_size, watermark_blocks)
        self._reserve_tokens = reserve_tokens

    @property
    def reserve_tokens(self) -> int | Literal["request_max"] | None:
        """Tokens reserved for each request at its admission."""
        return self._reserve_tokens or "request_max"

    def held(self, request: Request, tokens: int) -> int:
        """Return the reservation in blocks, whatever the context."""
        return self.blocks_for(self._reserve_tokens or self.peak_tokens(request))
