"""Runs of cached blocks: registered, referenced and evicted together."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from simqueue.kvcache.identity import Node


class Birth(NamedTuple):
    """When blocks were registered: block k at `stamp` + `per_block` * k; ties by the request's `rank` of admission.

    Of two copies of one block a lookup takes the older one.
    """

    stamp: int
    per_block: int
    rank: int

    def of(self, block: int) -> tuple[int, int]:
        """Return the sort key of one block."""
        return self.stamp + self.per_block * block, self.rank


class Extent:
    """Consecutive blocks of one node, made by one request.

    A request can hit only a part of an extent. Then the extent is split into two, of which `rest` is the second.
    Requests that held the whole extent keep their reference to the first part and find the other parts through `rest`.
    So a split costs the same however many requests hold the extent.

    Attributes
    ----------
    node : Node or None
        None for blocks in a free queue that cannot be hit.
    first, end : int
        Block numbers; `end` has no meaning while the extent grows.
    base : int or None
        While it grows: tokens less decode steps of the request that makes it. None: it does not grow.
    birth : Birth
    refs : int
        Requests that use these blocks now.
    rest : Extent or None
        The second part, after a split.
    before, after : Extent or None
        Neighbours in a free queue.
    """

    __slots__ = ("after", "base", "before", "birth", "end", "first", "node", "refs", "rest")

    def __init__(self, node: Node | None, first: int, end: int, birth: Birth, refs: int) -> None:
        self.node = node
        self.first = first
        self.end = end
        self.base: int | None = None
        self.birth = birth
        self.refs = refs
        self.rest: Extent | None = None
        self.before: Extent | None = None
        self.after: Extent | None = None

    def __len__(self) -> int:
        return self.end - self.first

    def content(self) -> tuple[Hashable, int, int]:
        """Return what the blocks hold: all tokens up to their node, and their block numbers."""
        return (None if self.node is None else self.node.past()), self.first, self.end
