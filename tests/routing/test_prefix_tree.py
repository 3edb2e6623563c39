"""The tree of texts against plain lists of texts, with splits, look-ups, removals and evictions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.routing.prefixtree import PrefixTree
from simqueue.routing.texts import DIGITS, Alphabet, HexDigits, Text, common_prefix, divided, length_of, rest_of, scaled
from simqueue.routing.texts import START as BEGINNING

from ..helpers.profiles import examples
from .text_lists import Lists, plain, shared


def digits(text: Text) -> str:
    """Return the digits of the tokens."""
    return "".join(
        f"{4096 * int(stream) + at // DIGITS:08x}"[at % DIGITS] for stream, s, n in text for at in range(s, s + n)
    )


PIECE = st.tuples(st.integers(1, 3), st.sampled_from([0, 0, 0, 2, 5]), st.integers(0, 6))
PROMPT = st.lists(PIECE, max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), PROMPT, st.integers(0, 2)),
        st.tuples(st.just("touch"), PROMPT, st.integers(0, 2)),
        st.tuples(st.just("remove"), st.just([]), st.integers(0, 2)),
        st.tuples(st.just("evict"), st.just([]), st.integers(0, 12)),
    ),
    max_size=25,
)


@pytest.mark.parametrize("by_digits", [False, True])
@examples(80, 1200)
@given(steps=STEPS, asked=st.lists(PROMPT, max_size=5))
def test_tree_is_as_lists_of_texts(by_digits: bool, steps: list[Any], asked: list[Any]) -> None:
    """After any changes, matches, owners, creators and sizes are those of lists."""
    alphabet = HexDigits(lambda stream, at: 4096 * stream + at) if by_digits else Alphabet()
    tree, lists = PrefixTree(alphabet), Lists()
    shown = digits if by_digits else plain
    for name, prompt, number in steps:
        text = scaled(prompt, DIGITS if by_digits else 1)
        if name == "insert":
            tree.insert(text, number)
            lists.insert(shown(text), number)
        elif name == "touch":
            tree.touch(tree.find(text), number)
            lists.touch(shown(text), number)
        elif name == "remove":
            tree.remove(number)
            lists.remove(number)
        else:
            tree.evict(number * (DIGITS if by_digits else 1))
            lists.evict(number * (DIGITS if by_digits else 1))
        tree.check_integrity()
        assert {owner: size for owner, size in tree.sizes.items() if size} == {
            owner: lists.size(owner) for owner in range(3) if lists.size(owner)
        }
    for prompt in [*asked, *(prompt for _, prompt, _ in steps)]:
        text = scaled(prompt, DIGITS if by_digits else 1)
        match = tree.find(text)
        matched, node = lists.find(shown(text))
        assert match.matched == matched
        assert set(match.owners) == set(node["uses"] if node else {})
        assert match.node.creator == (node["creator"] if node else None)


@examples(100, 800)
@given(one=PROMPT, other=PROMPT, data=st.data())
def test_common_beginnings_are_those_of_the_characters(one: Any, other: Any, data: st.DataObject) -> None:
    """From any place of a text on, the equal characters are counted, and the place after them is returned."""
    label, text = scaled(one, 1), scaled(other, 1)
    skipped = data.draw(st.integers(0, len(plain(text))))
    _, place = (
        common_prefix(text[:0], text, BEGINNING, Alphabet())
        if not skipped
        else common_prefix(divided(text, skipped)[0], text, BEGINNING, Alphabet())
    )
    assert plain(rest_of(text, place)) == plain(text)[skipped:]
    equal, after = common_prefix(label, text, place, Alphabet())
    assert equal == shared(plain(label), plain(text)[skipped:])
    assert plain(rest_of(text, after)) == plain(text)[skipped + equal :]


@examples(100, 1000)
@given(prompt=PROMPT, data=st.data())
def test_a_divided_text_is_whole_again(prompt: Any, data: st.DataObject) -> None:
    """Both parts together are the text, and the first has as many characters as was asked."""
    text = scaled(prompt, 3)
    at = data.draw(st.integers(0, length_of(text)))
    upper, lower = divided(text, at)
    assert length_of(upper) == at
    assert plain((*upper, *lower)) == plain(text)


class Counting(Alphabet):
    """Counts how many characters are looked at."""

    looked_at = 0

    def symbol(self, stream: int | str, position: int) -> Any:
        """Count one."""
        self.looked_at += 1
        return super().symbol(stream, position)


def test_work_does_not_grow_with_the_texts_before() -> None:
    """After 20 and after 2000 texts that share a beginning of one piece, a look-up and an insertion cost the same."""
    costs = []
    for before in (20, 2000):
        alphabet = Counting()
        tree = PrefixTree(alphabet)
        for number in range(before):
            tree.insert(((1, 0, 100_000), (10 + number, 0, 50_000)), number % 4)
        alphabet.looked_at = 0
        tree.find(((1, 0, 100_000), (5, 0, 7)))
        tree.insert(((1, 0, 100_000), (5, 0, 7)), 0)
        costs.append(alphabet.looked_at)
    assert costs[0] == costs[1] < 10


def test_an_eviction_of_all_leaves_nothing() -> None:
    """With a limit of 0 no node is left, however the texts are nested."""
    tree = PrefixTree()
    for length in range(1, 60):
        tree.insert(((1, 0, length), (length, 0, 3)), length % 3)
    tree.evict(0)
    assert set(tree.sizes.values()) == {0}
    assert tree.find(((1, 0, 5),)).matched == 0


@pytest.mark.parametrize(("first", "gone"), [(None, "new"), (lambda use: -use, "newest")])
def test_the_order_of_uses_can_be_given(first: Any, gone: str) -> None:
    """The least recently used leaf goes first, or the one that the given order has first."""
    tree = PrefixTree()
    tree.insert((("old", 0, 5),), 0)
    tree.insert((("new", 0, 5),), 0)
    tree.touch(tree.find((("old", 0, 5),)), 0)
    tree.insert((("newest", 0, 5),), 0)
    nodes = tree.leaving(0, 10, first)
    assert [node.label[0][0] for node in nodes] == [gone]
    assert length_of(nodes[0].label) == 5
    assert tree.sizes == {0: 15}
