"""The queue of unused blocks, against a plain list."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simqueue.kvcache.extents import Birth, Extent, IdleQueue


def extent(first: int, end: int) -> Extent:
    """Return an unused run of blocks."""
    return Extent(None, first, end, Birth(0, 0, 0), refs=0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["append", "before", "remove"]), st.integers(0, 10**6)), max_size=40))
def test_idle_queue_is_a_list(actions: list[tuple[str, int]]) -> None:
    """Appending, inserting before somebody and removing anywhere keep the order that a list has."""
    queue, row = IdleQueue(), []
    for action, number in actions:
        if action == "append" or not row:
            row.append(extent(0, 1))
            queue.append(row[-1])
        elif action == "before":
            at = number % len(row)
            new = extent(0, 1)
            queue.insert_before(new, row[at])
            row.insert(at, new)
        else:
            queue.remove(row.pop(number % len(row)))
        assert list(queue) == row
        if row:
            assert queue.front is row[0]


def test_what_has_left_the_queue_knows_no_neighbours() -> None:
    """An extent that is out of the queue keeps none of the others alive."""
    queue, row = IdleQueue(), [extent(k, k + 1) for k in range(3)]
    for one in row:
        queue.append(one)
    queue.remove(row[1])
    assert (row[1].before, row[1].after) == (None, None)
    assert (row[0].after, row[2].before) == (row[2], row[0])


def test_an_empty_queue_has_no_front() -> None:
    """Asking for what is reused next where nothing is idle is a mistake of the caller."""
    with pytest.raises(LookupError):
        _ = IdleQueue().front


def test_the_age_of_a_block_follows_its_number_where_decoding_made_it() -> None:
    """Block k of a growing run is as old as the step that filled it; ties go to who was admitted first."""
    grown, prefilled = Birth(10, 8, 3), Birth(26, 0, 1)
    assert grown.of(1) < prefilled.of(1) < grown.of(3)
    assert Birth(26, 0, 0).of(5) < prefilled.of(5)
