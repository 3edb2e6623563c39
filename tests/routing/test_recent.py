"""The index of what was sent in the last minutes, against a plain list of everything that was sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simqueue.routing.blocks import Key
from simqueue.routing.recent import Recent

from ..helpers.profiles import examples

TTL_S = 10.0
SENDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 5), st.integers(0, 6)), max_size=25)


def chain(stream: int, n: int) -> list[Key]:
    """Return n blocks of a stream."""
    return [1000 * stream + i for i in range(n)]


@examples(100, 4000)
@given(sends=SENDS, dropped=st.integers(-1, 2))
def test_it_matches_a_list_of_all_that_was_sent(sends: list, dropped: int) -> None:
    """A replica has the longest prefix that was sent there at most 10 s ago, unless it was dropped since."""
    index, sent, now_s = Recent(TTL_S), [], 0.0
    for number, stream, n, pause in sends:
        now_s += pause
        index.add(chain(stream, n), number, now_s)
        sent.append((now_s, number, stream, n))
    if dropped >= 0:
        index.drop(dropped)
        sent = [one for one in sent if one[1] != dropped]
    for stream in range(3):
        for later_s in (0, 3, 9, 10, 30):
            expected: dict[int, int] = {}
            for at_s, number, of, n in sent:
                if of == stream and now_s + later_s < at_s + TTL_S:
                    expected[number] = max(expected.get(number, 0), n)
            assert index.matched(chain(stream, 5), now_s + later_s) == expected


def test_memory_follows_what_was_sent_in_the_time() -> None:
    """After 1,000 prompts, one a second, only the blocks of the last 10 s are kept."""
    index = Recent(TTL_S)
    for i in range(1000):
        index.add(chain(i, 3), 0, float(i))
    assert len(index) == 30


def test_a_block_after_one_that_is_missing_does_not_count() -> None:
    """Replica 1 has only the second block of what is asked: nothing at the beginning."""
    index = Recent(TTL_S)
    index.add([1, 2], 0, 0.0)
    index.add([2, 3], 1, 0.0)
    assert index.matched([1, 2, 3], 1.0) == {0: 2}
