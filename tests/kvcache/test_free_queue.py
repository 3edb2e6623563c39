"""vLLM's free queue against a plain list of single blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import RunError
from simqueue.kvcache.extents import Birth, Extent
from simqueue.kvcache.freequeue import VllmFreeQueue
from simqueue.kvcache.identity import Trie

from ..helpers.profiles import examples

BLANK = ("blank", 0)
NODE = Trie().root


class Blocks:
    """Single blocks in the order of reuse, as vLLM keeps them."""

    def __init__(self, blocks: int, blank_first: bool) -> None:
        self.blank_first = blank_first
        self.row = [BLANK] * blocks

    def put(self, names: list[tuple[str, int]], unregistered: int) -> None:
        """Free a request's blocks from the last to the first."""
        if self.blank_first:
            self.row = [BLANK] * unregistered + self.row
        else:
            self.row += [BLANK] * unregistered
        self.row += reversed(names)


actions = st.lists(
    st.tuples(st.sampled_from(["put", "take", "remove", "split"]), st.integers(0, 10**6), st.integers(0, 4)),
    max_size=40,
)


@examples(300)
@given(actions, st.booleans())
def test_free_queue_reuses_blocks_in_the_order_of_single_ones(
    todo: list[tuple[str, int, int]], blank_first: bool
) -> None:
    """Freed, hit again, split and reused: what is left, and in which order, is that of a list of blocks."""
    queue, blocks = VllmFreeQueue(3, blank_first=blank_first), Blocks(3, blank_first)
    names: dict[Extent, str] = {}

    def content(extent: Extent) -> list[tuple[str, int]]:
        name = names.get(extent)
        return [BLANK if name is None else (name, block) for block in reversed(range(extent.first, extent.end))]

    for number, (action, value, unregistered) in enumerate(todo):
        known = [extent for extent in queue if extent in names]
        if action == "put":
            lengths = [1 + value % 3, 1 + value % 2]
            freed = [Extent(NODE, 10 * i, 10 * i + n, Birth(0, 0, 0), refs=0) for i, n in enumerate(lengths)]
            for i, extent in enumerate(freed):
                names[extent] = f"{number}.{i}"
            queue.put(freed, unregistered)
            blocks.put([one for extent in freed for one in reversed(content(extent))], unregistered)
        elif action == "take":
            n = min(value % 5, len(blocks.row))
            before = {extent: content(extent) for extent in known}
            gone = [extent for extent in queue.take(n) if extent in names]
            taken, blocks.row = blocks.row[:n], blocks.row[n:]
            assert gone == [extent for extent, held in before.items() if set(held) <= set(taken)]
        elif known:
            extent = known[value % len(known)]
            if action == "remove":
                blocks.row = [one for one in blocks.row if one not in content(extent)]
                queue.remove(extent)
            elif len(extent) > 1:
                rest = Extent(NODE, extent.first + 1, extent.end, extent.birth, refs=0)
                extent.end = extent.first + 1
                names[rest] = names[extent]
                queue.split(extent, rest)
        assert [BLANK] * queue.blank + [one for extent in queue for one in content(extent)] == blocks.row
        queue.check(len(blocks.row))


def test_a_queue_without_blocks_has_none_to_reuse() -> None:
    """To ask for more blocks than there are is an error of the caller, and says so."""
    with pytest.raises(RunError, match="1 blocks are to be reused, none are idle"):
        VllmFreeQueue(2).take(3)


def test_check_finds_used_blocks_and_wrong_sums() -> None:
    """A block that a request uses must not be in the queue, and the queue must have all free blocks."""
    queue = VllmFreeQueue(2)
    with pytest.raises(RunError, match="2 blank \\+ 0 idle blocks differ from 3 free"):
        queue.check(3)
    extent = Extent(NODE, 0, 1, Birth(0, 0, 0), refs=0)
    queue.put([extent], 0)
    extent.refs = 1
    with pytest.raises(RunError, match="has blocks that a request uses"):
        queue.check(3)


def test_the_age_of_a_block_follows_its_number_if_decoding_made_it() -> None:
    """Block k of a growing run is as old as the step that filled it; ties go to the request admitted first."""
    grown, prefilled = Birth(10, 8, 3), Birth(26, 0, 1)
    assert grown.of(1) < prefilled.of(1) < grown.of(3)
    assert Birth(26, 0, 0).of(5) < prefilled.of(5)


def test_what_has_left_the_queue_knows_no_neighbours() -> None:
    """An extent that is out of the queue keeps none of the others alive."""
    queue = VllmFreeQueue(0)
    extents = [Extent(NODE, k, k + 1, Birth(0, 0, 0), refs=0) for k in range(3)]
    queue.put(list(reversed(extents)), 0)
    queue.remove(extents[1])
    assert (extents[1].before, extents[1].after) == (None, None)
    assert (extents[0].after, extents[2].before) == (extents[2], extents[0])
