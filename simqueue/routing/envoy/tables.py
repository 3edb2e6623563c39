"""Tables that hash policies look up: a ring, and the table of Maglev.

Sources: Envoy, ring_hash_lb.cc and maglev_lb.cc; Eisenbud and others 2016, Maglev. The product hashes addresses with
xxHash; here names are hashed with BLAKE2b, so single keys go to other replicas and the statistics are the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping

from simqueue.routing.ring import hashed

_ALL = 1 << 64
"""Number of different hashes."""


class RingTable:
    """Points on a ring, in proportion to weights; the least weight gets a whole number of them."""

    def __init__(self, weights: Mapping[int, float], names: Mapping[int, str], minimum: int, maximum: int) -> None:
        total = sum(weights.values())
        least = min(weights.values()) / total
        scale = min(math.ceil(least * minimum) / least, maximum)
        placed: list[tuple[int, int]] = []
        target = 0.0
        for number, weight in weights.items():
            target += scale * weight / total
            i = 0
            while len(placed) < target:
                placed.append((hashed(f"{names[number]}_{i}"), number))
                i += 1
        placed.sort()
        self._hashes = [place for place, _ in placed]
        self._numbers = [number for _, number in placed]

    def __len__(self) -> int:
        return len(self._hashes)

    def of(self, place: int) -> int:
        """Return the replica of the first point from `place` on."""
        return self._numbers[bisect_left(self._hashes, place) % len(self._hashes)]

    def shares(self) -> dict[int, float]:
        """Return the part of the ring that each replica has."""
        found = dict.fromkeys(self._numbers, 0)
        before = self._hashes[-1] - _ALL
        for place, number in zip(self._hashes, self._numbers, strict=True):
            found[number] += place - before
            before = place
        return {number: part / _ALL for number, part in found.items() if part}


class MaglevTable:
    """A table that replicas fill in turns by weight, each in an order of its own."""

    def __init__(self, weights: Mapping[int, float], names: Mapping[int, str], size: int) -> None:
        self._table = _filled(weights, names, size)

    def __len__(self) -> int:
        return len(self._table)

    def of(self, place: int) -> int:
        """Return the replica of a hash."""
        return self._table[place % len(self._table)]

    def shares(self) -> dict[int, float]:
        """Return the part of the table that each replica has."""
        found: dict[int, int] = {}
        for number in self._table:
            found[number] = found.get(number, 0) + 1
        return {number: n / len(self._table) for number, n in found.items()}


def _filled(weights: Mapping[int, float], names: Mapping[int, str], size: int) -> list[int]:
    most = max(weights.values())
    order = sorted(weights, key=lambda number: names[number])
    places = {number: hashed(names[number]) % size for number in order}
    skips = {number: hashed(f"{names[number]}/skip") % (size - 1) + 1 for number in order}
    due = dict.fromkeys(order, 0.0)
    table = [-1] * size
    left, turn = size, 0
    while left:
        turn += 1
        for number in order:
            if turn * weights[number] < due[number]:
                continue
            due[number] += most
            place, skip = places[number], skips[number]
            while table[place] >= 0:
                place = (place + skip) % size
            table[place] = number
            places[number] = place
            left -= 1
            if not left:
                break
    return table
