"""Which blocks were sent to which replica in the last minutes: an index of caches that is only a guess."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from simqueue.routing.blocks import Key


class Recent:
    """The blocks of prompts that were sent to a replica at most some time ago.

    Memory is bounded by what is sent in that time.

    Parameters
    ----------
    ttl_s : float
        Time for which a block counts after it was last sent.
    """

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._ends: dict[Key, dict[int, float]] = {}
        self._sent: deque[tuple[float, int, Sequence[Key]]] = deque()

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, keys: Sequence[Key], number: int, now_s: float) -> None:
        """Learn that a prompt with these blocks is sent to a replica."""
        self._forget_old(now_s)
        end_s = now_s + self._ttl_s
        for key in keys:
            self._ends.setdefault(key, {})[number] = end_s
        self._sent.append((end_s, number, keys))

    def matched(self, keys: Sequence[Key], now_s: float) -> dict[int, int]:
        """Return how many blocks at the beginning each replica has; those without any are left out."""
        found: dict[int, int] = {}
        for n, key in enumerate(keys):
            ends = self._ends.get(key, {})
            having = [one for one, end_s in ends.items() if end_s > now_s and found.get(one, 0) == n]
            if not having:
                break
            for number in having:
                found[number] = n + 1
        return found

    def drop(self, number: int) -> None:
        """Forget all blocks of a replica."""
        for key in [key for key, ends in self._ends.items() if number in ends]:
            self._take(key, number)

    def _forget_old(self, now_s: float) -> None:
        while self._sent and self._sent[0][0] <= now_s:
            end_s, number, keys = self._sent.popleft()
            for key in keys:
                if self._ends.get(key, {}).get(number) == end_s:  # not sent again since
                    self._take(key, number)

    def _take(self, key: Key, number: int) -> None:
        ends = self._ends[key]
        del ends[number]
        if not ends:
            del self._ends[key]
