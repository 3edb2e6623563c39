"""Contiguous KV: everything a request may ever need is reserved when it is admitted (Orca, FasterTransformer)."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from simqueue.kvcache.base import KVCache
from simqueue.request import Request


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
        self.reserve_tokens = reserve_tokens

    def held(self, request: Request, tokens: int) -> int:
        """Return the reservation in blocks, whatever the context."""
        return self.blocks_for(self.reserve_tokens or self.peak_tokens(request))
