"""Indexes of blocks that forget the least recently sent ones: per replica, or one table for all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from simqueue.routing.blocks import Key


class LruPerReplica:
    """For each replica the blocks that were sent there last, at most so many.

    A replica may lack a block at the beginning and have a later one: the first block of a prompt is the first to be
    forgotten.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, OrderedDict[Key, None]] = {}
        self._having: dict[Key, dict[int, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._blocks.values()))

    def add(self, keys: Sequence[Key], number: int, capacity: int) -> None:
        """Learn that a prompt with these blocks is sent to a replica, of which `capacity` blocks are kept."""
        blocks = self._blocks.setdefault(number, OrderedDict())
        for key in keys:
            blocks[key] = None
            blocks.move_to_end(key)
            self._having.setdefault(key, {})[number] = None
            if len(blocks) > capacity:
                self._forget(blocks.popitem(last=False)[0], number)

    def counted(self, keys: Sequence[Key]) -> dict[int, int]:
        """Return how many blocks each replica has, up to the first one that no replica has; without those at 0."""
        found: dict[int, int] = {}
        for key in keys:
            having = self._having.get(key)
            if not having:
                break
            for number in having:
                found[number] = found.get(number, 0) + 1
        return found

    def drop(self, number: int) -> None:
        """Forget all blocks of a replica."""
        for key in self._blocks.pop(number, ()):
            self._forget(key, number)

    def _forget(self, key: Key, number: int) -> None:
        having = self._having[key]
        del having[number]
        if not having:
            del self._having[key]


class SharedLru:
    """Blocks with the replicas that they were sent to; those not sent for some time are dropped at the next check.

    Parameters
    ----------
    capacity : int
        Blocks that are kept.
    idle_s, check_every_s : float
        A block goes at the first check, at whole multiples of `check_every_s`, at which it is idle for longer.
    """

    def __init__(self, capacity: int, idle_s: float, check_every_s: float) -> None:
        self._capacity = capacity
        self._idle_s = idle_s
        self._check_every_s = check_every_s
        self._blocks: OrderedDict[Key, tuple[float, dict[int, None]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, keys: Sequence[Key], number: int, now_s: float) -> None:
        """Learn that a prompt with these blocks is sent to a replica."""
        checked_s = self._last_check(now_s)
        while self._blocks and self._is_gone(next(iter(self._blocks.values()))[0], checked_s):
            self._blocks.popitem(last=False)
        for key in keys:
            _, having = self._blocks.pop(key, (0.0, {}))
            having[number] = None
            self._blocks[key] = (now_s, having)
            if len(self._blocks) > self._capacity:
                self._blocks.popitem(last=False)

    def matched(self, keys: Sequence[Key], numbers: Sequence[int], now_s: float) -> dict[int, int]:
        """Return how many blocks at the beginning each of these replicas has; those without any are left out."""
        checked_s = self._last_check(now_s)
        found: dict[int, int] = {}
        rest = list(numbers)
        for n, key in enumerate(keys, 1):
            sent_s, having = self._blocks.get(key, (now_s, {}))
            rest = [] if self._is_gone(sent_s, checked_s) else [number for number in rest if number in having]
            if not rest:
                break
            for number in rest:
                found[number] = n
        return found

    def drop(self, number: int) -> None:
        """Forget a replica."""
        for _, having in self._blocks.values():
            having.pop(number, None)

    def _last_check(self, now_s: float) -> float:
        return now_s // self._check_every_s * self._check_every_s

    def _is_gone(self, sent_s: float, checked_s: float) -> bool:
        return checked_s - sent_s > self._idle_s
