"""Runs of cached blocks, and the queue in which the unused ones wait to be reused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from simqueue.kvcache.identity import Node


class Birth(NamedTuple):
    """When blocks were registered: block k at `stamp` + `per_block` * k; ties by the request's `place`.

    Of two copies of one block a lookup takes the older.
    """

    stamp: int
    per_block: int
    place: int

    def of(self, block: int) -> tuple[int, int]:
        """Return the sort key of one block."""
        return self.stamp + self.per_block * block, self.place


class Extent:
    """Consecutive blocks of one node, made by one request: registered, referenced and evicted together.

    Attributes
    ----------
    node : Node or None
        None for blocks without identity that wait among the others.
    first, end : int
        Block numbers; `end` counts for nothing while the extent grows.
    base : int or None
        While it grows: tokens less decode steps of the request that makes it.
    birth : Birth
    refs : int
        Requests that use these blocks now.
    rest : Extent or None
        What followed when this one was split; whoever held the whole holds both.
    before, after : Extent or None
        Neighbours in the queue of unused blocks.
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


class IdleQueue:
    """Unused blocks in the order in which they are reused: from the front, each extent from its end."""

    def __init__(self) -> None:
        self._ends = Extent(None, 0, 0, Birth(0, 0, 0), 0)
        self._ends.before = self._ends.after = self._ends

    def __iter__(self) -> Iterator[Extent]:
        extent = self._ends.after
        while extent is not None and extent is not self._ends:
            following = extent.after
            yield extent
            extent = following

    @property
    def front(self) -> Extent:
        """The extent that is reused next. Precondition: the queue is not empty."""
        front = self._ends.after
        if front is None or front is self._ends:
            raise LookupError("nothing is idle")
        return front

    def append(self, extent: Extent) -> None:
        """Let `extent` wait behind all others."""
        self.insert_before(extent, self._ends)

    def insert_before(self, extent: Extent, follower: Extent) -> None:
        """Let `extent` wait just before `follower`, which is in the queue."""
        before = follower.before
        extent.before, extent.after = before, follower
        follower.before = extent
        if before is not None:
            before.after = extent

    def remove(self, extent: Extent) -> None:
        """Take `extent` out."""
        before, after = extent.before, extent.after
        if before is not None and after is not None:
            before.after, after.before = after, before
        extent.before = extent.after = None
