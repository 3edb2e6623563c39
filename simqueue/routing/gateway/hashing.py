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
        value = _mixed(value, int.from_bytes(data[start : start + 8], "little"))
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    return _ended(value)


def furc(data: bytes, buckets: int = BUCKETS) -> int:
    """Return a number below `buckets`."""
    bits = _Bits(murmur64a(data))
    depth = (buckets - 1).bit_length()
    at = depth
    for _ in range(_TRIES):
        while not bits.row(at) >> at & 1:
            depth -= 1
            if not depth:
                return 0
            at = depth
        row = bits.row(at + _SHIFT * (depth - 1))
        value = 1
        for _ in range(depth - 1):
            at += _SHIFT
            value = value << 1 | row >> at & 1
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


def _mixed(value: int, word: int) -> int:
    """Return the state of the hash after eight more bytes."""
    word = word * _M & _MASK
    word = (word ^ word >> _R) * _M & _MASK
    return (value ^ word) * _M & _MASK


def _ended(value: int) -> int:
    value = (value ^ value >> _R) * _M & _MASK
    return value ^ value >> _R


class _Bits:
    """A row of bits: a first word, and then always the hash of the word before."""

    _start = SEED ^ (8 * _M & _MASK)

    def __init__(self, word: int) -> None:
        self._row = self._last = word
        self._length = _WORD_BITS

    def row(self, at: int) -> int:
        """Return a number with at least the bits up to number `at`."""
        while self._length <= at:
            self._last = _ended(_mixed(self._start, self._last))
            self._row |= self._last << self._length
            self._length += _WORD_BITS
        return self._row


def points_of(name: str) -> tuple[int, ...]:
    """Return the places of a worker on the ring."""
    return tuple([ring_hash(f"{name}:{i}") for i in range(POINTS)])


class Ring:
    """Points of workers in the order of their hashes.

    Parameters
    ----------
    points : sequence of sequence of int
        For each worker, in the router's order, its places. A place that several have is of the last of them.
    """

    def __init__(self, points: Sequence[Sequence[int]]) -> None:
        owners = {place: number for number, places in enumerate(points) for place in places}
        self._hashes = sorted(owners)
        self._owners = [owners[place] for place in self._hashes]

    def find(self, key: str, able: Callable[[int], bool]) -> int:
        """Return the position in `points` of the first worker from the hash of `key` on that is able."""
        start = bisect.bisect_left(self._hashes, ring_hash(key))
        total = len(self._owners)
        for step in range(total):
            owner = self._owners[(start + step) % total]
            if able(owner):
                return owner
        raise LookupError("no worker is able")
