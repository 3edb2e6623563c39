"""The hash function of `consistent_hash`, and the ring of its points.

The parts are public algorithms: MurmurHash64A (A. Appleby), and the furc hash of mcrouter, which maps evenly to
``m`` values by the bits of a series of hashes.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

SEED = 4193360111
BUCKETS = 2**23 - 1
POINTS = 160
"""Points of a worker on the ring."""

_MASK = 2**64 - 1
_M = 0xC6A4A7935BD1E995
_R = 47
_TRIES = 32
_SHIFT = 23
_WORD_BITS = 64


def murmur64a(data: bytes, seed: int = SEED) -> int:
    """Return the MurmurHash64A of `data`."""
    value = seed ^ (len(data) * _M & _MASK)
    whole = len(data) // 8 * 8
    for start in range(0, whole, 8):
        word = int.from_bytes(data[start : start + 8], "little") * _M & _MASK
        word = (word ^ word >> _R) * _M & _MASK
        value = (value ^ word) * _M & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> _R) * _M & _MASK
    return value ^ value >> _R


def furc(data: bytes, buckets: int = BUCKETS) -> int:
    """Return a number below `buckets`."""
    depth = (buckets - 1).bit_length()
    bit = _bits(data)
    at = depth
    for _ in range(_TRIES):
        while not bit(at):
            depth -= 1
            if not depth:
                return 0
            at = depth
        at += _SHIFT
        value = 1
        for _ in range(depth - 1):
            value = 2 * value + bit(at)
            at += _SHIFT
        if value < buckets:
            return value
    return 0


def ring_hash(text: str) -> int:
    """Return the place of a key or of a point on the ring."""
    return murmur64a(furc(text.encode()).to_bytes(4, "little"))


def short_hash(text: str) -> str:
    """Return 16 hexadecimal digits, by which long texts are named."""
    return f"{ring_hash(text):016x}"


def _bits(data: bytes) -> Callable[[int], int]:
    words = [murmur64a(data)]

    def bit(number: int) -> int:
        while len(words) <= number // _WORD_BITS:
            words.append(murmur64a(words[-1].to_bytes(8, "little")))
        return words[number // _WORD_BITS] >> number % _WORD_BITS & 1

    return bit


class Ring:
    """Points of workers in the order of their hashes.

    Parameters
    ----------
    names : sequence of str
        The names of the workers, in the router's order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        points = {ring_hash(f"{name}:{i}"): number for number, name in enumerate(names) for i in range(POINTS)}
        self._hashes = sorted(points)
        self._owners = [points[value] for value in self._hashes]

    def find(self, key: str, able: Callable[[int], bool]) -> int:
        """Return the position in `names` of the first worker from the hash of `key` on that is able."""
        start = bisect.bisect_left(self._hashes, ring_hash(key))
        total = len(self._owners)
        for step in range(total):
            owner = self._owners[(start + step) % total]
            if able(owner):
                return owner
        raise LookupError("no worker is able")
