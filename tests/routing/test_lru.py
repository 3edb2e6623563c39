"""Indexes that forget the least recently sent blocks, against plain lists of everything that was sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simqueue.routing.blocks import Key
from simqueue.routing.lru import LruPerReplica, SharedLru

from ..helpers.profiles import examples

SENDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 5), st.integers(0, 6)), max_size=25)


def chain(stream: int, n: int) -> list[Key]:
    """Return n blocks of a stream."""
    return [1000 * stream + i for i in range(n)]


def last(sent: list[Key], capacity: int) -> list[Key]:
    """Return the different blocks that were sent last."""
    kept: list[Key] = []
    for key in reversed(sent):
        if key not in kept and len(kept) < capacity:
            kept.append(key)
    return kept


@examples(100, 4000)
@given(sends=SENDS, capacity=st.integers(1, 9), dropped=st.integers(-1, 2))
def test_each_replica_keeps_what_was_sent_there_last(sends: list, capacity: int, dropped: int) -> None:
    """A replica has the last so many different blocks; counting ends at the first block that none has."""
    index, sent = LruPerReplica(), {number: list[Key]() for number in range(3)}
    for number, stream, n, _ in sends:
        index.add(chain(stream, n), number, capacity)
        sent[number] += chain(stream, n)
    if dropped >= 0:
        index.drop(dropped)
        sent[dropped] = []
    kept = {number: last(keys, capacity) for number, keys in sent.items()}
    assert len(index) == sum(map(len, kept.values()))
    for stream in range(3):
        expected: dict[int, int] = {}
        for key in chain(stream, 5):
            having = [number for number in range(3) if key in kept[number]]
            if not having:
                break
            for number in having:
                expected[number] = expected.get(number, 0) + 1
        assert index.counted(chain(stream, 5)) == expected


@examples(100, 4000)
@given(sends=SENDS, capacity=st.integers(1, 9), asked=st.lists(st.integers(0, 2), min_size=1, unique=True))
def test_a_table_for_all_keeps_the_last_blocks_that_are_not_idle(sends: list, capacity: int, asked: list[int]) -> None:
    """Blocks go when the table is full, or at the first check (each 4 s) at which they are idle for more than 10 s."""
    index, now_s = SharedLru(capacity, idle_s=10.0, check_every_s=4.0), 0.0
    table: list[tuple[Key, float, list[int]]] = []  # the least recently sent first
    for number, stream, n, pause in sends:
        now_s += pause
        index.add(chain(stream, n), number, now_s)
        table = [one for one in table if now_s // 4 * 4 - one[1] <= 10]
        for key in chain(stream, n):
            old = next((numbers for known, _, numbers in table if known == key), [])
            table = [one for one in table if one[0] != key]
            table = [*table, (key, now_s, [*old, number])][-capacity:]
    assert len(index) == len(table)
    for stream in range(3):
        for later_s in (now_s, now_s + 7, now_s + 11, now_s + 20):
            fresh = {key: numbers for key, at_s, numbers in table if later_s // 4 * 4 - at_s <= 10}
            expected: dict[int, int] = {}
            for number in asked:
                n = next((i for i, key in enumerate(chain(stream, 5)) if number not in fresh.get(key, [])), 5)
                if n:
                    expected[number] = n
            assert index.matched(chain(stream, 5), asked, later_s) == expected


def test_a_dropped_replica_is_not_in_the_table() -> None:
    """Its blocks stay for others."""
    index = SharedLru(100, 10.0, 1.0)
    index.add(chain(0, 2), 0, 0.0)
    index.add(chain(0, 2), 1, 0.0)
    index.drop(0)
    assert index.matched(chain(0, 2), [0, 1], 0.0) == {1: 2}
