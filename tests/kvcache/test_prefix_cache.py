"""The prefix cache against one object a block, one list of tokens a request, and a list as free queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import RunError
from simqueue.kvcache.base import NO_HIT
from simqueue.kvcache.freequeue import VllmFreeQueue
from simqueue.kvcache.prefix import PrefixKVCache
from simqueue.request import Job, Request

from ..helpers.profiles import examples

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
    blank_first: bool
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
                if block.key is None and self.blank_first:
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


@examples(250)
@given(moves, st.integers(1, 5), st.integers(4, 30), st.booleans())
def test_prefix_cache_finds_keeps_and_forgets_what_single_blocks_do(
    moves: list[tuple[int, str, int]], size: int, pool: int, blank_first: bool
) -> None:
    """Hits, how many of them are idle, and free blocks are those of a pool of single blocks, after every move."""
    cache = PrefixKVCache(pool, size, free_queue=partial(VllmFreeQueue, blank_first=blank_first))
    naive = NaiveCache([Block() for _ in range(pool)], size, blank_first)
    all_players, rank = players(), 0
    for number, move, amount in moves:
        cache.step_number += 1
        player = all_players[number]
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
                job.rank = rank
                rank += 1
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
        cache.check((one.job, one.computed) for one in all_players if one.blocks is not None)


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
    cache = PrefixKVCache(20, 4, registration_lag=lag)
    cache.step_number = 1
    one = request(0, ((1, 0, 10),), 5)
    other = request(1, ((1, 0, 10), (5, 0, 20)), 6)
    cache.admit(one, NO_HIT, 10)
    one.known_tokens = 11
    one.base = one.known_tokens - 1  # in step 2 it feeds token 11
    one.decoding = True
    cache.begin_decoding(one)
    found = []
    for cache.step_number in range(1, 6):
        found.append(cache.lookup(other).blocks)
    assert found == seen_blocks
    assert cache.lookup(other).may_grow


def test_equal_blocks_live_side_by_side_and_the_older_is_found() -> None:
    """Two copies of a block, computed in one step each, are both kept; when the older one goes the other is found."""
    cache = PrefixKVCache(8, 4)
    cache.step_number = 1
    one, two, three = (request(index, ((1, 0, 5),)) for index in range(3))
    cache.admit(one, NO_HIT, 5)
    cache.step_number = 2
    two.rank = 1
    cache.admit(two, NO_HIT, 5)
    assert cache.used == 4
    cache.release(one, 5)
    hit = cache.lookup(three)
    assert (hit.blocks, hit.idle_blocks) == (1, 1)  # the older, which no request uses
    cache.take(cache.free)
    hit = cache.lookup(three)
    assert (hit.blocks, hit.idle_blocks) == (1, 0)


@pytest.mark.parametrize(("blank_first", "kept"), [(True, 2), (False, 1)])
def test_what_is_reused_first_is_a_rule_of_the_version(blank_first: bool, kept: int) -> None:
    """A freed block without identity is reused before all others, or queues with its request's other blocks.

    The pool is used up, so a request of 2 full blocks and a third in part leaves just these three to be reused.
    """
    cache = PrefixKVCache(3, 4, free_queue=partial(VllmFreeQueue, blank_first=blank_first))
    one = request(0, ((1, 0, 9),))
    cache.admit(one, NO_HIT, 9)
    cache.release(one, 9)
    later = request(1, ((1, 0, 8), (2, 0, 4)))
    cache.take(1)
    assert cache.lookup(later).blocks == 2
    cache.take(1)
    assert cache.lookup(later).blocks == 1
    # up to 0.20 an unhashed tail may even outlive cached blocks that were freed before it
    cache = PrefixKVCache(3, 4, free_queue=partial(VllmFreeQueue, blank_first=blank_first))
    full, part = request(2, ((1, 0, 9),)), request(3, ((3, 0, 2),))
    cache.admit(full, NO_HIT, 8)
    cache.admit(part, NO_HIT, 2)
    cache.release(full, 8)
    cache.release(part, 2)
    cache.take(1)
    assert cache.lookup(full).blocks == kept


def test_long_copies_are_found_whole() -> None:
    """Of two copies of several blocks the older is found to its end, and a third request may use it."""
    cache = PrefixKVCache(12, 4)
    cache.step_number = 1
    one, two, three = (request(index, ((1, 0, 13),)) for index in range(3))
    for cache.step_number, job in enumerate((one, two), 1):
        job.rank = job.index
        cache.admit(job, NO_HIT, 13)
    hit = cache.lookup(three)
    assert (hit.blocks, hit.tokens, hit.idle_blocks) == (3, 12, 0)
    cache.admit(three, hit, 13)
    assert cache.used == 4 + 4 + 1
    cache.check([(one, 13), (two, 13), (three, 13)])
    cache.release(one, 13)  # three still uses what one made
    cache.check([(two, 13), (three, 13)])
    assert cache.used == 4 + 4
    assert cache.lookup(request(3, ((1, 0, 13),))).idle_blocks == 0


def test_a_block_that_ends_with_an_answer_is_older_than_the_next_steps() -> None:
    """What lags behind is registered when the last token is delivered: after that step, before the next one.

    With a lag of one step, block 1 of the request that ends in step 4 is registered then; the copy is computed in
    step 5, by a request that was admitted first. The older one is found, and no request uses it.
    """
    cache = PrefixKVCache(20, 4, registration_lag=1)
    cache.step_number = 1
    early, ends = request(0, ((1, 0, 5), (5, 0, 3))), request(1, ((1, 0, 5),), 5)
    early.rank, ends.rank = 0, 1
    cache.admit(early, NO_HIT, 3)
    cache.admit(ends, NO_HIT, 5)
    ends.known_tokens = 6
    ends.base = ends.known_tokens - cache.step_number
    cache.begin_decoding(ends)
    for cache.step_number in (2, 3, 4):
        cache.take(cache.growth(ends.request, cache.step_number + 3, cache.step_number + 4))
    cache.end_decoding(ends, 8)
    cache.complete(ends, 8)
    cache.release(ends, 8)
    cache.step_number = 5
    cache.extend(early, cache.growth(early.request, 3, 8), 8)
    hit = cache.lookup(request(2, ((1, 0, 5), (5, 0, 3), (9, 0, 4))))
    assert (hit.blocks, hit.idle_blocks) == (2, 2)


@pytest.mark.parametrize(("lag", "idle_blocks"), [(0, 0), (1, 1)])
def test_age_of_a_generated_block_is_the_step_that_registers_it(lag: int, idle_blocks: int) -> None:
    """Block 1 is fed in step 4 and registered then, or one step later; a prompt of step 4 makes a copy and leaves.

    Registered in one step, the block of the request that was admitted first counts as older.
    """
    cache = PrefixKVCache(20, 4, registration_lag=lag)
    cache.step_number = 1
    decodes, copy = request(0, ((1, 0, 5),), 5), request(1, ((1, 0, 5), (5, 0, 4)))
    decodes.rank, copy.rank = 0, 1
    cache.admit(decodes, NO_HIT, 5)
    decodes.known_tokens = 6
    decodes.base = decodes.known_tokens - cache.step_number
    cache.begin_decoding(decodes)
    for cache.step_number in (2, 3, 4):
        cache.take(cache.growth(decodes.request, cache.step_number + 3, cache.step_number + 4))
    cache.admit(copy, NO_HIT, 9)
    cache.release(copy, 9)
    cache.step_number = 6
    hit = cache.lookup(request(2, ((1, 0, 5), (5, 0, 3), (9, 0, 4))))
    assert (hit.blocks, hit.idle_blocks) == (2, idle_blocks)


def test_a_hit_may_grow_beside_blocks_that_do_not() -> None:
    """One request has given an answer in part, another is giving the same: who asks for more may find it later."""
    cache = PrefixKVCache(30, 4)
    cache.step_number = 1
    gone, decodes = request(0, ((1, 0, 8), (5, 0, 5))), request(1, ((1, 0, 8),), 5)
    cache.admit(gone, NO_HIT, 13)
    cache.release(gone, 13)
    later = request(2, ((1, 0, 8), (5, 0, 20)))
    assert not cache.lookup(later).may_grow
    cache.admit(decodes, cache.lookup(decodes), 8)
    decodes.known_tokens = 9
    decodes.base = decodes.known_tokens - cache.step_number
    cache.begin_decoding(decodes)
    hit = cache.lookup(later)
    assert (hit.blocks, hit.may_grow) == (3, True)


def shared_pool() -> tuple[PrefixKVCache, list[tuple[Job, int]], Any]:
    """Return a pool in which two requests share two blocks, one decodes, and a third has left two blocks behind."""
    cache = PrefixKVCache(20, 4)
    cache.step_number = 1
    one, two, gone = request(0, ((1, 0, 9),), 5), request(1, ((1, 0, 9),), 6), request(2, ((7, 0, 9),))
    cache.admit(gone, NO_HIT, 9)
    cache.release(gone, 9)
    cache.admit(one, NO_HIT, 9)
    cache.admit(two, cache.lookup(two), 9)
    one.known_tokens = 10
    one.base = 9
    cache.begin_decoding(one)
    holders = [(one, 9), (two, 9)]
    cache.check(holders)

    def extents_of(prompt: tuple[tuple[int, int, int], ...]) -> list[Any]:
        return [part[0] for part in cache.lookup(request(3, prompt)).parts]

    return cache, holders, extents_of


def test_check_finds_a_reference_too_many() -> None:
    """Blocks that count another number of users than use them are an error."""
    cache, holders, extents_of = shared_pool()
    extents_of(((1, 0, 9),))[0].refs += 1
    with pytest.raises(RunError, match="1 extents count other references than their holders"):
        cache.check(holders)


def test_check_finds_waiting_blocks_that_are_in_use() -> None:
    """Blocks in the free queue have no users."""
    cache, holders, extents_of = shared_pool()
    extents_of(((7, 0, 9),))[0].refs = 1
    with pytest.raises(RunError, match="the free queue has blocks that a request uses"):
        cache.check(holders)


def test_check_finds_a_wrong_number_of_free_blocks() -> None:
    """Free blocks are those without content and those in the free queue."""
    cache, holders, _ = shared_pool()
    cache.free -= 1
    with pytest.raises(RunError, match="differ from 15 free"):
        cache.check(holders)


def test_a_broken_pool_is_told() -> None:
    """`check` compares the counters with their holders."""
    cache = PrefixKVCache(8, 4)
    one = request(0, ((1, 0, 9),))
    cache.admit(one, NO_HIT, 9)
    cache.check([(one, 9)])
    with pytest.raises(RunError, match="KV cache"):
        cache.check([])
