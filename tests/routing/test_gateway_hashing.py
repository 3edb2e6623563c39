"""The hash of `consistent_hash` against its published check, another implementation, and what it promises."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from simqueue.routing.gateway.hashing import (
    BUCKETS,
    POINTS,
    SEED,
    Ring,
    furc,
    murmur64a,
    points_of,
    ring_hash,
    short_hash,
)

from ..helpers.profiles import examples


def test_murmur_has_its_published_check_value() -> None:
    """SMHasher's check of MurmurHash64A: hashes of 0, 01, 012, ... with seeds 256, 255, ..., hashed again: 1F0D3804."""
    hashes = b"".join(murmur64a(bytes(range(n)), 256 - n).to_bytes(8, "little") for n in range(256))
    assert murmur64a(hashes, 0) & 0xFFFFFFFF == 0x1F0D3804


def other_murmur(data: bytes, seed: int) -> int:
    """Return MurmurHash64A with wrapping 64-bit numbers of numpy."""
    m, shift = np.uint64(0xC6A4A7935BD1E995), np.uint64(47)
    with np.errstate(over="ignore"):
        value = np.uint64(seed) ^ (np.uint64(len(data)) * m)
        for word in np.frombuffer(data[: len(data) & ~7], "<u8"):
            mixed = word * m
            mixed = (mixed ^ (mixed >> shift)) * m
            value = (value ^ mixed) * m
        rest = data[len(data) & ~7 :]
        if rest:
            value = (value ^ np.uint64(int.from_bytes(rest, "little"))) * m
        value = (value ^ (value >> shift)) * m
    return int(value ^ (value >> shift))


def other_furc(data: bytes, m: int) -> int:
    """Return the furc hash from one long row of bits."""
    words = [other_murmur(data, SEED)]
    for _ in range(300):
        words.append(other_murmur(words[-1].to_bytes(8, "little"), SEED))
    row = "".join(f"{word:064b}"[::-1] for word in words)
    depth = at = int(np.ceil(np.log2(m)))
    for _ in range(32):
        while row[at] == "0":
            depth = at = depth - 1
            if depth == 0:
                return 0
        found = "1" + "".join(row[at + 23 * i] for i in range(1, depth))
        at += 23 * depth
        if int(found, 2) < m:
            return int(found, 2)
    return 0


@examples(40, 400)
@given(data=st.binary(max_size=40), seed=st.integers(0, 2**32 - 1))
def test_murmur_is_that_of_another_implementation(data: bytes, seed: int) -> None:
    """For texts of all lengths and any seed."""
    assert murmur64a(data, seed) == other_murmur(data, seed)


@examples(40, 400)
@given(text=st.text(max_size=20), m=st.sampled_from([2, 3, 10, 100, 1000, BUCKETS]))
def test_furc_is_that_of_another_implementation(text: str, m: int) -> None:
    """For any text and number of buckets."""
    assert furc(text.encode(), m) == other_furc(text.encode(), m)


@examples(40, 400)
@given(data=st.binary(min_size=1, max_size=20), m=st.integers(2, 500))
def test_a_further_bucket_only_takes(data: bytes, m: int) -> None:
    """With one bucket more, a key stays or goes to the new one: what the furc hash is for."""
    assert furc(data, m + 1) in (furc(data, m), m)


def test_furc_is_even() -> None:
    """3,000 keys over 7 buckets do not differ from equal counts (chi-square)."""
    counts = Counter(furc(f"key-{i}".encode(), 7) for i in range(3000))
    assert stats.chisquare([counts[bucket] for bucket in range(7)]).pvalue > 1e-4


def test_places_on_the_ring_are_hashes_of_hashes() -> None:
    """A place is the MurmurHash64A of the four bytes of the furc hash; a long text is named by its digits."""
    expected = other_murmur(other_furc("é:159".encode(), BUCKETS).to_bytes(4, "little"), SEED)
    assert ring_hash("é:159") == expected
    assert short_hash("é:159") == f"{expected:016x}"


@pytest.mark.parametrize("seed", range(5))
def test_a_key_goes_along_the_ring_to_the_next_worker_that_is_able(seed: int) -> None:
    """As by a list of all points, sorted from the key on, for each key and any workers that are down."""
    random = Random(seed)
    names = [f"http://10.0.0.{i}:8000" for i in range(random.randint(1, 5))]
    up = [random.random() < 0.6 for _ in names]
    up[random.randrange(len(names))] = True
    ring = Ring([points_of(name) for name in names])
    points = [(ring_hash(f"{name}:{i}"), number) for number, name in enumerate(names) for i in range(POINTS)]
    for number in range(30):
        key = f"header:x-session-id:{number}"
        start = ring_hash(key)
        following = sorted(((place < start, place), worker) for place, worker in points)
        assert ring.find(key, up.__getitem__) == next(worker for _, worker in following if up[worker])


def test_a_ring_without_able_workers_has_none() -> None:
    """The search ends after one turn."""
    with pytest.raises(LookupError):
        Ring([points_of("a")]).find("key", lambda _: False)
