"""Which tokens are the same: a path depends on the tokens alone and not on how a prompt was cut into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simqueue.kvcache.identity import Trie
from simqueue.request import Job, Request

from ..helpers.profiles import examples

Segments = tuple[tuple[int, int, int], ...]


def job(prompt: Segments | None, output_stream: int | None = None, *, index: int = 0, prompt_tokens: int = 0) -> Job:
    """Return a request made of the given pieces."""
    length = sum(piece[2] for piece in prompt) if prompt else prompt_tokens
    return Job(Request(str(index), 0.0, length, 50, prompt=prompt, output_stream=output_stream), index)


def names(trie: Trie, one: Job, blocks: int, size: int) -> list[tuple[int, int]]:
    """Return each block's identity: its node and its number."""
    pieces = trie.path(one).blocks(0, blocks, size)
    return [(id(node), k) for node, first, end in pieces for k in range(first, end)]


pieces = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=4)


@st.composite
def cut_again(draw: st.DrawFn, prompt: list[tuple[int, int, int]]) -> Segments:
    """Return the same tokens in smaller pieces, some of them empty."""
    cut = []
    for stream, start, length in prompt:
        at = draw(st.integers(0, length))
        cut += [(stream, start, at), (stream, start + at, length - at)]
    return tuple(cut)


@examples(200)
@given(st.data(), pieces, st.integers(1, 5))
def test_cutting_a_prompt_elsewhere_changes_nothing(
    data: st.DataObject, prompt: list[tuple[int, int, int]], size: int
) -> None:
    """Pieces of pieces name the same blocks."""
    trie = Trie()
    whole, cut = tuple(prompt), data.draw(cut_again(prompt))
    blocks = sum(piece[2] for piece in prompt) // size
    assert names(trie, job(whole, 7), blocks, size) == names(trie, job(cut, 7, index=1), blocks, size)


def tokens_of(prompt: Segments) -> list[tuple[int, int]]:
    """Write the tokens out."""
    return [(stream, start + i) for stream, start, length in prompt for i in range(length)]


@examples(400)
@given(pieces, pieces, st.integers(1, 4))
def test_blocks_are_the_same_just_when_all_tokens_up_to_their_end_are(
    one: list[tuple[int, int, int]], other: list[tuple[int, int, int]], size: int
) -> None:
    """Block k has one identity in two prompts if, and only if, their first (k + 1) x size tokens are equal."""
    trie = Trie()
    first, second = tokens_of(tuple(one)), tokens_of(tuple(other))
    blocks = min(len(first), len(second)) // size
    left, right = names(trie, job(tuple(one)), blocks, size), names(trie, job(tuple(other), index=1), blocks, size)
    for k in range(blocks):
        assert (left[k] == right[k]) == (first[: (k + 1) * size] == second[: (k + 1) * size])


def test_a_next_turn_goes_on_where_the_answer_ended() -> None:
    """Prompt and answer of a turn, repeated as pieces of the next prompt, are the same blocks."""
    trie = Trie()
    turn = job(((1, 0, 20),), 2)
    following = job(((1, 0, 20), (2, 0, 30), (3, 0, 5)), 4, index=1)
    assert names(trie, turn, 12, 4) == names(trie, following, 12, 4)
    assert names(trie, turn, 13, 4)[12] != names(trie, following, 13, 4)[12]


def test_tokens_that_nobody_names_are_ones_own() -> None:
    """Two requests of equal length without pieces share nothing; answers without a stream neither."""
    trie = Trie()
    left, right = job(None, index=0, prompt_tokens=8), job(None, index=1, prompt_tokens=8)
    assert not set(names(trie, left, 4, 4)) & set(names(trie, right, 4, 4))
    assert len(trie.path(left).nodes) == 1  # prompt and answer are one run
    same_prompt = [job(((1, 0, 8),), None, index=index) for index in (2, 3)]
    first, second = (names(trie, one, 4, 4) for one in same_prompt)
    assert first[:2] == second[:2]
    assert not set(first[2:]) & set(second[2:])


def test_a_trie_forgets_whom_nobody_uses() -> None:
    """Once all requests have left and nothing is cached, only the root remains."""
    trie = Trie()
    paths = [trie.path(job(((1, 0, 4), (2 + index, 0, 4)), 9, index=index)) for index in range(3)]
    for path in paths:
        trie.leave(path)
    assert not trie.root.children


def test_a_million_tokens_are_one_run() -> None:
    """What a prompt costs follows its pieces and not its length."""
    path = Trie().path(job(((1, 0, 500_000), (1, 500_000, 500_000)), 2))
    assert path.ends[0] == 1_000_000
    assert len(path.nodes) == 2
