"""Consistent hashing: replicas and keys on a circle, so that few keys move when a replica joins or leaves.

Source: Karger and others 1997, Consistent hashing and random trees. The hash is BLAKE2b, the same on every machine.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from simqueue.routing.base import View


class Ring:
    """A circle on which each replica has points in proportion to its weight.

    Parameters
    ----------
    points : int
        Points of a replica with weight 1.
    """

    def __init__(self, points: int) -> None:
        self._points = points
        self._of: dict[int, list[tuple[int, int]]] = {}
        self._hashes: list[int] = []
        self._numbers: list[int] = []

    def place(self, replicas: Sequence[View]) -> None:
        """Put exactly these replicas on the circle."""
        self._of = {one.number: self._of.get(one.number) or self._points_of(one) for one in replicas}
        placed = sorted(point for points in self._of.values() for point in points)
        self._hashes = [place for place, _ in placed]
        self._numbers = [number for _, number in placed]

    def along(self, key: str) -> Iterator[int]:
        """Yield the numbers of all replicas, each once, in the order in which they follow `key` on the circle."""
        size = len(self._hashes)
        start = bisect_left(self._hashes, hashed(key))
        met: set[int] = set()
        for i in range(size):
            number = self._numbers[(start + i) % size]
            if number not in met:
                met.add(number)
                yield number
                if len(met) == len(self._of):
                    return

    def _points_of(self, replica: View) -> list[tuple[int, int]]:
        n = max(1, round(self._points * replica.weight))
        return sorted((hashed(f"{replica.name}/{i}"), replica.number) for i in range(n))


def hashed(text: str) -> int:
    """Return a whole number below 2**64 for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
