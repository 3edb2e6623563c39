"""Paged KV: a request holds only the blocks that its tokens fill (Kwon et al., SOSP 2023)."""

from __future__ import annotations

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
