"""Indexes of blocks that forget the least recently sent ones: per replica, or one table for all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

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
            having = self._having.get(key)
            if having is None:
                having = self._having[key] = {}
            having[number] = None
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


@dataclass(slots=True)
class _Entry:
    """When a block was last sent, and the replicas that it was sent to."""

    sent_s: float
    having: dict[int, None]


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
        self._blocks: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, keys: Sequence[Key], number: int, now_s: float) -> None:
        """Learn that a prompt with these blocks is sent to a replica."""
        checked_s = self._last_check(now_s)
        blocks = self._blocks
        while blocks and self._is_gone(next(iter(blocks.values())).sent_s, checked_s):
            blocks.popitem(last=False)
        for key in keys:
            entry = blocks.get(key)
            if entry is None:
                blocks[key] = _Entry(now_s, {number: None})
                if len(blocks) > self._capacity:
                    blocks.popitem(last=False)
            else:
                blocks.move_to_end(key)
                entry.sent_s = now_s
                entry.having[number] = None

    def matched(self, keys: Sequence[Key], numbers: Sequence[int], now_s: float) -> dict[int, int]:
        """Return how many blocks at the beginning each of these replicas has; those without any are left out."""
        checked_s = self._last_check(now_s)
        found: dict[int, int] = {}
        rest = list(numbers)
        for n, key in enumerate(keys, 1):
            entry = self._blocks.get(key)
            if entry is None or self._is_gone(entry.sent_s, checked_s):
                break
            having = entry.having
            rest = [number for number in rest if number in having]
            if not rest:
                break
            for number in rest:
                found[number] = n
        return found

    def drop(self, number: int) -> None:
        """Forget a replica."""
        for entry in self._blocks.values():
            entry.having.pop(number, None)

    def _last_check(self, now_s: float) -> float:
        return now_s // self._check_every_s * self._check_every_s

    def _is_gone(self, sent_s: float, checked_s: float) -> bool:
        return checked_s - sent_s > self._idle_s
