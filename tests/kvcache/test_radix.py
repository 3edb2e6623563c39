"""The radix tree against tokens as lists, and the pool around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.kvcache.radix import RadixKVCache
from simqueue.kvcache.radixtree import RadixRules, RadixTree
from simqueue.kvcache.tokens import Tokens
from simqueue.request import Job, Request

from ..helpers.profiles import examples

PIECES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=4)


def tokens_of(pieces: list[tuple[int, int, int]]) -> tuple[tuple[int, int], ...]:
    """Return a sequence token by token."""
    return tuple((stream, start + k) for stream, start, length in pieces for k in range(length))


@given(PIECES, st.integers(0, 40), st.integers(0, 40))
def test_cut_runs_are_the_tokens_between(pieces: list[tuple[int, int, int]], first: int, end: int) -> None:
    """Cutting runs is cutting lists."""
    whole = tokens_of(pieces)
    first, end = min(first, len(whole) - 1), min(max(first + 1, end), len(whole))
    assert tokens_of(Tokens(pieces).between(min(first, end - 1), end)) == whole[min(first, end - 1) : end]


@given(PIECES, PIECES)
def test_shared_tokens_are_counted_as_in_lists(
    one: list[tuple[int, int, int]], two: list[tuple[int, int, int]]
) -> None:
    """The common beginning of two sequences does not depend on how they were cut into pieces."""
    left, right = tokens_of(one), tokens_of(two)
    same = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    assert Tokens(one).shared(Tokens(two).runs, 0, len(left)) == same


@dataclass
class Model:
    """What is cached, as a set of prefixes in whole pages."""

    page: int
    known: set[tuple[tuple[int, int], ...]] = field(default_factory=set)

    def insert(self, tokens: tuple[tuple[int, int], ...]) -> None:
        """Add all prefixes of whole pages."""
        for end in range(self.page, len(tokens) + 1, self.page):
            self.known.add(tokens[:end])

    def match(self, tokens: tuple[tuple[int, int], ...]) -> int:
        """Return the length of the longest known prefix."""
        ends = range(self.page, len(tokens) + 1, self.page)
        return max((end for end in ends if tokens[:end] in self.known), default=0)


@pytest.mark.parametrize("recency", ["nodes", "path", "end"])
@examples(60)
@given(st.lists(st.tuples(st.booleans(), PIECES), max_size=12), st.sampled_from([1, 2, 4]))
def test_the_tree_finds_what_was_put_in(recency: Any, steps: list[tuple[bool, Any]], page: int) -> None:
    """Insertions and look-ups agree with a set of prefixes, and the sums with a walk."""
    tree, model = RadixTree(page, RadixRules(recency=recency)), Model(page)
    for puts, pieces in steps:
        tokens, plain = Tokens(pieces), tokens_of(pieces)
        before = model.match(plain)
        assert tree.peek(tokens, len(plain)) == before
        if puts:
            found, node = tree.insert(tokens, len(plain))
            assert (found, node.depth) == (before, len(plain) // page * page)
            model.insert(plain)
        else:
            assert tree.match(tokens, len(plain)).depth == before
        tree.check()
    assert tree.tokens == page * len(model.known)


@examples(60)
@given(st.lists(PIECES, min_size=1, max_size=8), st.integers(0, 30), st.data())
def test_what_is_held_is_not_evicted(inserted: list[Any], amount: int, data: st.DataObject) -> None:
    """Evictions take leaves until the amount is reached, never what is held, and all of the rest if asked."""
    tree = RadixTree(1, RadixRules())
    for pieces in inserted:
        tree.insert(Tokens(pieces), len(tokens_of(pieces)))
    held = data.draw(st.sampled_from(inserted))
    length = len(tokens_of(held))
    node = tree.match(Tokens(held), length)
    tree.lock(node)
    evictable = tree.evictable
    gone = tree.evict(amount)
    assert min(amount, evictable) <= gone <= evictable
    assert tree.peek(Tokens(held), length) == length
    tree.check()
    tree.evict(10**6)
    assert (tree.tokens, tree.evictable) == (length, 0)
    tree.unlock(node)
    tree.check()
    assert tree.evictable == length


ORDERS = {
    "lru": [2, 1, 3],
    "lfu": [2, 3, 1],
    "slru": [2, 3, 1],
    "fifo": [1, 2, 3],
    "filo": [3, 2, 1],
    "priority": [2, 1, 3],
}


@pytest.mark.parametrize("eviction", list(ORDERS))
def test_order_of_eviction(eviction: Any) -> None:
    """1 is made first, put in twice and then used before 3 is; 2 was never used again; all of equal priority."""
    tree = RadixTree(1, RadixRules(eviction=eviction, recency="end", counts_hits=True))
    of = {stream: Tokens([(stream, 0, 5)]) for stream in (1, 2, 3)}
    for stream in (1, 2, 3):
        tree.insert(of[stream], 5)
    tree.insert(of[1], 5)
    tree.match(of[1], 5)
    tree.match(of[3], 5)
    order = []
    while tree.tokens:
        tree.evict(1)
        order += [stream for stream in of if stream not in order and not tree.peek(of[stream], 5)]
    assert order == ORDERS[eviction]


def test_a_prompt_outlives_its_answer() -> None:
    """What goes beyond the prompt is a node of its own, so that it is evicted first."""
    pool = RadixKVCache(100, 1, RadixRules(recency="end", splits_prompt=True, looks_after="never", evicts="short"))
    job = Job(Request("0", 0.0, 10, 5, prompt=((1, 0, 10),), output_stream=2), 0)
    holding = pool.holding(job, 10)
    pool.hold(holding, pool.tree.match(holding.tokens, 9))
    pool.lengthen(holding, 14)
    pool.finish(holding, 14, 0)
    assert (pool.available, pool.tree.evictable, pool.free) == (86, 14, 100)
    assert pool.make_room(87)
    assert pool.cached_tokens(Request("1", 0.0, 11, 1, prompt=((1, 0, 10), (3, 0, 1)))) == 10
    pool.check_holdings([])
