"""The prefix cache against one object a block, one list of tokens a request, and a list as free queue."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simqueue.errors import RunError
from simqueue.kvcache.base import NO_HIT
from simqueue.kvcache.prefix import PrefixKVCache
from simqueue.request import Job, Request

Token = tuple[int, int]


@dataclass(eq=False)
class Block:
    """One block of the naive pool."""

    users: int = 0
    key: tuple[Token, ...] | None = None


@dataclass
class NaiveCache:
    """A pool whose blocks are objects; everything is looked up."""

    free: list[Block]
    size: int
    unhashed_first: bool
    found: dict[tuple[Token, ...], list[Block]] = field(default_factory=dict)

    def lookup(self, tokens: list[Token]) -> list[Block]:
        """Return the longest run of registered blocks, the last token left out."""
        run = []
        for end in range(self.size, len(tokens), self.size):
            copies = self.found.get(tuple(tokens[:end]))
            if not copies:
                break
            run.append(copies[0])
        return run

    def extend(self, blocks: list[Block], tokens: list[Token]) -> None:
        """Hand out what `tokens` need and register what is full."""
        while len(blocks) * self.size < len(tokens):
            block = self.free.pop(0)
            if block.key is not None:
                self.found[block.key].remove(block)
                block.key = None
            block.users = 1
            blocks.append(block)
        for k in range(len(tokens) // self.size):
            if blocks[k].key is None:
                key = blocks[k].key = tuple(tokens[: (k + 1) * self.size])
                self.found.setdefault(key, []).append(blocks[k])

    def admit(self, hits: list[Block], tokens: list[Token]) -> list[Block]:
        """Use hits once more, then extend."""
        for block in hits:
            if not block.users:
                self.free.remove(block)
            block.users += 1
        blocks = list(hits)
        self.extend(blocks, tokens)
        return blocks

    def release(self, blocks: list[Block]) -> None:
        """Give up from the last to the first."""
        for block in reversed(blocks):
            block.users -= 1
            if not block.users:
                if block.key is None and self.unhashed_first:
                    self.free.insert(0, block)
                else:
                    self.free.append(block)


@dataclass
class Player:
    """One request in both caches, and how many of its tokens are computed (a decode has one more that is not)."""

    job: Job
    tokens: list[Token]
    computed: int = 0
    blocks: list[Block] | None = None


PROMPTS = (((1, 0, 9),), ((1, 0, 9), (2, 0, 6)), ((1, 0, 5), (3, 0, 8)), ((1, 0, 9), (50, 0, 12)), ((4, 0, 14),))
"""Some begin alike; the fourth repeats an answer."""


def players() -> list[Player]:
    """Return requests with common beginnings, some of them twice."""
    result = []
    for index, prompt in enumerate(PROMPTS + PROMPTS[:3]):
        stream = 50 if index % 3 == 0 else 60 + index
        pieces = (*prompt, (stream, 0, 12))
        tokens = [(s, start + i) for s, start, n in pieces for i in range(n)]
        prompt_tokens = sum(piece[2] for piece in prompt)
        request = Request(str(index), 0.0, prompt_tokens, 12, prompt=prompt, output_stream=stream)
        result.append(Player(Job(request, index), tokens))
    return result


moves = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["in", "in", "on", "on", "out"]), st.integers(1, 9)), max_size=60
)


@settings(max_examples=250, deadline=None)
@given(moves, st.integers(1, 5), st.integers(4, 30), st.booleans())
def test_prefix_cache_finds_keeps_and_forgets_what_single_blocks_do(
    moves: list[tuple[int, str, int]], size: int, pool: int, unhashed_first: bool
) -> None:
    """Hits, how many of them are idle, and free blocks are those of a pool of single blocks, after every move."""
    cache = PrefixKVCache(pool, size, unhashed_first=unhashed_first)
    naive = NaiveCache([Block() for _ in range(pool)], size, unhashed_first)
    everybody, clock, place = players(), [0], [0]
    cache.follow(lambda: clock[0])
    for number, move, amount in moves:
        clock[0] += 1
        player = everybody[number]
        job = player.job
        job.known_tokens = job.request.prompt_tokens
        if move == "in" and player.blocks is None:
            known = player.tokens[: job.known_tokens]
            hits, hit = naive.lookup(known), cache.lookup(job)
            assert (hit.blocks, hit.tokens) == (len(hits), len(hits) * size)
            assert hit.idle_blocks == sum(not block.users for block in hits)
            until = min(len(known), hit.tokens + amount)
            fits = -(-until // size) - len(hits) + hit.idle_blocks <= len(naive.free)
            assert cache.can_admit(job, hit, until, others_run=True) == fits
            if fits:
                job.place = place[0]
                place[0] += 1
                cache.admit(job, hit, until)
                player.blocks, player.computed = naive.admit(hits, player.tokens[:until]), until
        elif move == "on" and player.blocks is not None:
            until = min(job.known_tokens, player.computed + amount)
            if -(-until // size) - len(player.blocks) <= len(naive.free):
                cache.extend(job, cache.growth(job.request, player.computed, until), until)
                naive.extend(player.blocks, player.tokens[:until])
                player.computed = until
        elif move == "out" and player.blocks is not None:
            cache.release(job, player.computed)
            naive.release(player.blocks)
            player.blocks, player.computed = None, 0
            job.preemptions += 1
        assert cache.free == len(naive.free)
        cache.check((one.job, one.computed) for one in everybody if one.blocks is not None)


def request(index: int, prompt: tuple[tuple[int, int, int], ...], output_stream: int | None = None) -> Job:
    """Return a request at its first admission."""
    length = sum(piece[2] for piece in prompt)
    return Job(Request(str(index), 0.0, length, 40, prompt=prompt, output_stream=output_stream), index)


def test_statistics_count_a_request_once_and_its_comeback_apart() -> None:
    """Queried and found tokens are those of first admissions; lookups that fail to be admitted count nothing."""
    cache = PrefixKVCache(10, 4)
    first, second = request(0, ((1, 0, 16),)), request(1, ((1, 0, 16), (2, 0, 8)))
    cache.admit(first, cache.lookup(first), 16)
    for _ in range(5):
        hit = cache.lookup(second)
    assert (cache.queried_tokens, cache.hit_tokens) == (16, 0)
    cache.admit(second, hit, 24)
    assert (cache.queried_tokens, cache.hit_tokens, cache.self_hit_tokens) == (40, 16, 0)
    cache.release(second, 24)
    second.preemptions = 1
    cache.admit(second, cache.lookup(second), 24)
    assert (cache.queried_tokens, cache.hit_tokens, cache.self_hit_tokens) == (40, 16, 20)


@pytest.mark.parametrize(("lag", "seen_blocks"), [(0, [2, 2, 3, 3, 3]), (1, [2, 2, 2, 3, 3])])
def test_a_decoding_request_grows_what_others_find(lag: int, seen_blocks: list[int]) -> None:
    """A block of generated tokens is found in the step that feeds its last token, with a lag one step later."""
    cache, clock = PrefixKVCache(20, 4, lag=lag), [1]
    cache.follow(lambda: clock[0])
    one = request(0, ((1, 0, 10),), 5)
    other = request(1, ((1, 0, 10), (5, 0, 20)), 6)
    cache.admit(one, NO_HIT, 10)
    one.known_tokens = 11
    one.base = one.known_tokens - 1  # in step 2 it feeds token 11
    one.decoding = True
    cache.begin_decoding(one)
    found = []
    for clock[0] in range(1, 6):
        found.append(cache.lookup(other).blocks)
    assert found == seen_blocks
    assert cache.lookup(other).may_grow


def test_equal_blocks_live_side_by_side_and_the_older_is_found() -> None:
    """Two copies of a block, computed in one step each, are both kept; when the older one goes the other is found."""
    cache, clock = PrefixKVCache(8, 4), [1]
    cache.follow(lambda: clock[0])
    one, two, three = (request(index, ((1, 0, 5),)) for index in range(3))
    cache.admit(one, NO_HIT, 5)
    clock[0] = 2
    two.place = 1
    cache.admit(two, NO_HIT, 5)
    assert cache.used == 4
    cache.release(one, 5)
    hit = cache.lookup(three)
    assert (hit.blocks, hit.idle_blocks) == (1, 1)  # the older, which nobody uses
    cache.take(cache.free)
    hit = cache.lookup(three)
    assert (hit.blocks, hit.idle_blocks) == (1, 0)


@pytest.mark.parametrize(("unhashed_first", "kept"), [(True, 2), (False, 1)])
def test_what_is_reused_first_is_a_rule_of_the_version(unhashed_first: bool, kept: int) -> None:
    """A freed block without identity is reused before all others, or queues with its request's other blocks.

    The pool is used up, so a request of 2 full blocks and a third in part leaves just these three to be reused.
    """
    cache = PrefixKVCache(3, 4, unhashed_first=unhashed_first)
    one = request(0, ((1, 0, 9),))
    cache.admit(one, NO_HIT, 9)
    cache.release(one, 9)
    later = request(1, ((1, 0, 8), (2, 0, 4)))
    cache.take(1)
    assert cache.lookup(later).blocks == 2
    cache.take(1)
    assert cache.lookup(later).blocks == 1
    # up to 0.20 an unhashed tail may even outlive cached blocks that were freed before it
    cache = PrefixKVCache(3, 4, unhashed_first=unhashed_first)
    full, part = request(2, ((1, 0, 9),)), request(3, ((3, 0, 2),))
    cache.admit(full, NO_HIT, 8)
    cache.admit(part, NO_HIT, 2)
    cache.release(full, 8)
    cache.release(part, 2)
    cache.take(1)
    assert cache.lookup(full).blocks == kept


def test_a_broken_pool_is_told() -> None:
    """`check` compares the counters with their holders."""
    cache = PrefixKVCache(8, 4)
    one = request(0, ((1, 0, 9),))
    cache.admit(one, NO_HIT, 9)
    cache.check([(one, 9)])
    with pytest.raises(RunError, match="KV cache"):
        cache.check([])
