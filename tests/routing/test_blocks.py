"""Keys of blocks: the same exactly where all tokens up to the end of a block are the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.routing.blocks import Blocks, Key, common

from ..helpers.profiles import examples

PIECES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 7)), min_size=1, max_size=5)


def prompted(pieces: list[tuple[int, int, int]], name: str = "r") -> Request:
    """Return a request with this prompt."""
    return Request(name, 0.0, sum(n for _, _, n in pieces), 1, prompt=tuple(pieces))


def tokens(pieces: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return the prompt token by token."""
    return [(stream, start + i) for stream, start, n in pieces for i in range(n)]


@examples(100, 5000)
@given(one=PIECES, other=PIECES, size=st.integers(1, 6))
def test_keys_agree_exactly_where_prompts_do(one: list, other: list, size: int) -> None:
    """Block i of two prompts has the same key if and only if their first (i + 1) * size tokens are the same."""
    keys, others = Blocks().of(prompted(one), size), Blocks().of(prompted(other, "s"), size)
    assert len(keys) == len(tokens(one)) // size
    for i, (key, another) in enumerate(zip(keys, others, strict=False)):
        end = (i + 1) * size
        assert (key == another) == (tokens(one)[:end] == tokens(other)[:end])


@examples(80, 2000)
@given(pieces=PIECES, size=st.integers(1, 6), most=st.integers(1, 4))
def test_a_rest_is_a_block_of_its_own(pieces: list, size: int, most: int) -> None:
    """With the rest, a prompt of n tokens has ceil(n / size) keys, all different, and at most as many as are asked."""
    n = len(tokens(pieces))
    keys = Blocks().of(prompted(pieces), size, with_rest=True)
    assert len(set(keys)) == len(keys) == -(-n // size)
    assert keys[: n // size] == Blocks().of(prompted(pieces), size)
    assert Blocks().of(prompted(pieces), size, most, with_rest=True) == keys[:most]


@examples(80, 2000)
@given(pieces=PIECES, size=st.integers(1, 6))
def test_it_does_not_matter_how_a_prompt_is_cut(pieces: list, size: int) -> None:
    """One piece per token gives the same keys."""
    single = [(stream, position, 1) for stream, position in tokens(pieces)]
    assert Blocks().of(prompted(single), size) == Blocks().of(prompted(pieces), size)


def test_a_prompt_without_known_tokens_is_like_no_other() -> None:
    """Requests without a prompt share blocks only with themselves."""
    one, other = Request("a", 0.0, 32, 1), Request("b", 0.0, 32, 1)
    blocks = Blocks()
    assert len(blocks.of(one, 16)) == 2
    assert not set(blocks.of(one, 16)) & set(blocks.of(other, 16))
    assert blocks.of(one, 16) == Blocks().of(one, 16)


@examples(80, 2000)
@given(n=st.integers(0, 40), known=st.integers(0, 40))
def test_the_common_beginning_is_found(n: int, known: int) -> None:
    """Of n keys, those known are the first min(n, known)."""
    keys: tuple[Key, ...] = tuple(range(n))
    assert common(keys, dict.fromkeys(range(known))) == min(n, known)
