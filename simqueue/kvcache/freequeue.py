"""The order in which free blocks of a prefix cache are reused: a strategy, since engines differ in it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.kvcache.extents import Birth, Extent


@mypyc_attr(allow_interpreted_subclasses=True)
class FreeQueue:
    """The blocks of a pool that no request uses. Registered blocks can still be hit, until they are reused.

    Parameters
    ----------
    blocks : int
        Blocks of the pool; all are free and blank at first.
    """

    def __init__(self, blocks: int) -> None:
        self.blank = blocks
        """Free blocks that cannot be hit and are reused before all others."""

    @abstractmethod
    def __iter__(self) -> Iterator[Extent]:
        raise NotImplementedError

    @abstractmethod
    def put(self, extents: Sequence[Extent], unregistered: int) -> None:
        """Take in the blocks that one request has freed.

        Parameters
        ----------
        extents : sequence of Extent
            Registered blocks that no other request uses, in order of position.
        unregistered : int
            Blocks after them that were not full, so that they cannot be hit.
        """
        raise NotImplementedError

    @abstractmethod
    def remove(self, extent: Extent) -> None:
        """Take `extent` out: a request uses it again."""
        raise NotImplementedError

    @abstractmethod
    def split(self, extent: Extent, rest: Extent) -> None:
        """Learn that `extent`, which is in the queue, has been split and `rest` is its second part."""
        raise NotImplementedError

    @abstractmethod
    def evict(self, blocks: int) -> list[Extent]:
        """Take `blocks` out of the queue for reuse, without the blank ones; they can no longer be hit.

        Returns the extents of which nothing is left. Precondition: the queue has that many blocks.
        """
        raise NotImplementedError

    def take(self, blocks: int) -> list[Extent]:
        """Hand out `blocks`: blank ones first; return the extents of which nothing is left."""
        blank = min(blocks, self.blank)
        self.blank -= blank
        return self.evict(blocks - blank) if blocks > blank else []

    def state(self) -> Hashable:
        """Return which blocks are free, in the order of reuse (to find livelocks)."""
        return self.blank, tuple(extent.content() for extent in self)

    def check(self, free: int) -> None:
        """Compare the queue with the number of `free` blocks of the pool; raise `RunError` if they differ."""
        idle = list(self)
        if any(extent.refs or extent.base is not None for extent in idle):
            raise RunError("KV cache: the free queue has blocks that a request uses")
        if self.blank + sum(map(len, idle)) != free:
            raise RunError(f"KV cache: {self.blank} blank + {sum(map(len, idle))} idle blocks differ from {free} free")


class VllmFreeQueue(FreeQueue):
    """vLLM V1's free queue: least recently freed first; a request frees its blocks from the last to the first.

    Parameters
    ----------
    blocks : int
    blank_first : bool
        Whether freed blocks that cannot be hit are reused before all others; if not, they queue like them.
    """

    def __init__(self, blocks: int, *, blank_first: bool = True) -> None:
        super().__init__(blocks)
        self._blank_first = blank_first
        self._ends = Extent(None, 0, 0, Birth(0, 0, 0), 0)
        """Front and back of a ring: `after` it the next extent to be reused, `before` it the last one."""
        self._ends.before = self._ends.after = self._ends

    def __iter__(self) -> Iterator[Extent]:
        extent = self._ends.after
        while extent is not None and extent is not self._ends:
            following = extent.after
            yield extent
            extent = following

    def put(self, extents: Sequence[Extent], unregistered: int) -> None:
        """Append the last blocks first, so that the first ones, which more requests share, are reused last."""
        if unregistered and self._blank_first:
            self.blank += unregistered
        elif unregistered:
            self._insert_before(Extent(None, 0, unregistered, Birth(0, 0, 0), refs=0), self._ends)
        for extent in reversed(extents):
            self._insert_before(extent, self._ends)

    def remove(self, extent: Extent) -> None:
        """Take `extent` out."""
        before, after = extent.before, extent.after
        if before is not None and after is not None:
            before.after, after.before = after, before
        extent.before = extent.after = None

    def split(self, extent: Extent, rest: Extent) -> None:
        """Put `rest` before `extent`: its blocks are reused first."""
        self._insert_before(rest, extent)

    def evict(self, blocks: int) -> list[Extent]:
        """Reuse from the front of the queue, each extent from its end."""
        gone = []
        while blocks:
            extent = self._ends.after
            if extent is None or extent is self._ends:
                raise RunError(f"KV cache: {blocks} blocks are to be reused, none are idle")
            reused = min(blocks, len(extent))
            extent.end -= reused
            blocks -= reused
            if not len(extent):
                self.remove(extent)
                gone.append(extent)
        return gone

    def _insert_before(self, extent: Extent, follower: Extent) -> None:
        before = follower.before
        extent.before, extent.after = before, follower
        follower.before = extent
        if before is not None:
            before.after = extent
