"""Blocks that a decoding request makes, and blocks that are cut: what others find, and who holds what."""

from __future__ import annotations

import pytest

from simqueue.errors import RunError
from simqueue.kvcache.base import NO_HIT
from simqueue.kvcache.extents import Birth, Extent
from simqueue.kvcache.freequeue import VllmFreeQueue
from simqueue.kvcache.identity import Trie
from simqueue.kvcache.prefix import PrefixKVCache
from simqueue.request import Job, Request

Prompt = tuple[tuple[int, int, int], ...]
LONG_ANSWER = (5, 0, 20)


def request(index: int, prompt: Prompt, output_stream: int | None = None) -> Job:
    """Return a request at its first admission."""
    job = Job(
        Request(str(index), 0.0, sum(piece[2] for piece in prompt), 40, 0, None, None, prompt, output_stream), index
    )
    job.rank = index
    return job


def decode(cache: PrefixKVCache, job: Job) -> None:
    """Admit `job` with its whole prompt in this step, and let it decode from the next one on."""
    cache.admit(job, NO_HIT, job.known_tokens)
    job.known_tokens += 1
    job.base = job.known_tokens - cache.step_number
    cache.begin_decoding(job)


def decoding_pool() -> tuple[PrefixKVCache, Job]:
    """Return a pool of 20 blocks in which a request of 10 prompt tokens has come to 18 tokens, in step 9."""
    cache, one = PrefixKVCache(20, 4), request(0, ((1, 0, 10),), 5)
    cache.step_number = 1
    decode(cache, one)
    cache.step_number = 9
    cache.take(cache.growth(one.request, 10, 18))
    return cache, one


def test_generated_blocks_belong_to_the_last_run_of_a_prompt_in_pieces() -> None:
    """Tokens 13 to 16 follow a prompt of three pieces; their block is found once the 16th is fed."""
    cache, pieces = PrefixKVCache(20, 4), ((1, 0, 4), (2, 0, 4), (3, 0, 4))
    cache.step_number = 1
    decode(cache, request(0, pieces, 5))
    later, found = request(1, (*pieces, LONG_ANSWER)), []
    for cache.step_number in range(1, 6):
        found.append(cache.lookup(later).blocks)
    assert found == [3, 3, 3, 3, 4]


def test_a_request_shares_what_another_one_has_generated_so_far() -> None:
    """18 tokens fill 4 blocks; another request uses these and takes 1 of its own, and the first one goes on growing."""
    cache, one = decoding_pool()
    other, third = request(1, ((1, 0, 10), LONG_ANSWER)), request(2, ((1, 0, 10), LONG_ANSWER))
    hit = cache.lookup(other)
    assert (hit.blocks, hit.idle_blocks, hit.may_grow) == (4, 0, True)
    cache.admit(other, hit, 18)
    assert cache.used == 5 + 1
    cache.check([(one, 18), (other, 18)])
    cache.step_number = 11
    hit = cache.lookup(third)
    assert (hit.blocks, hit.idle_blocks) == (5, 0)
    cache.check([(one, 20), (other, 18)])


def test_what_a_request_has_generated_stays_cached_and_no_longer_grows() -> None:
    """A request that ends with 20 tokens leaves 5 blocks: 4 that another one uses and 1 idle one."""
    cache, one = decoding_pool()
    other, third = request(1, ((1, 0, 10), LONG_ANSWER)), request(2, ((1, 0, 10), LONG_ANSWER))
    cache.admit(other, cache.lookup(other), 18)
    cache.step_number = 11
    cache.end_decoding(one, 20)
    cache.check([(one, 20), (other, 18)])
    cache.release(one, 20)
    cache.check([(other, 18)])
    for cache.step_number in (12, 19):
        hit = cache.lookup(third)
        assert (hit.blocks, hit.idle_blocks, hit.may_grow) == (5, 1, False)
    cache.release(other, 18)
    cache.check([])
    assert cache.free == 20


def test_a_request_that_generates_no_full_block_leaves_none() -> None:
    """From 10 to 11 tokens no block is filled, so only the 2 of the prompt are found."""
    cache, one = PrefixKVCache(20, 4), request(0, ((1, 0, 10),), 5)
    cache.step_number = 1
    decode(cache, one)
    cache.step_number = 2
    cache.end_decoding(one, 11)
    cache.release(one, 11)
    cache.check([])
    assert cache.lookup(request(1, ((1, 0, 10), LONG_ANSWER))).blocks == 2


def test_the_unused_rest_of_a_cached_prompt_stays_idle() -> None:
    """Of 4 cached blocks a request uses the first 2; the other 2 can be hit or reused."""
    cache, one = PrefixKVCache(20, 4), request(0, ((1, 0, 17),))
    cache.admit(one, NO_HIT, 17)
    cache.release(one, 17)
    other, third = request(1, ((1, 0, 8), (2, 0, 8))), request(2, ((1, 0, 17),))
    cache.admit(other, cache.lookup(other), 16)
    cache.check([(other, 16)])
    assert cache.used == 4
    hit = cache.lookup(third)
    assert (hit.blocks, hit.idle_blocks) == (4, 2)
    cache.take(16)
    assert cache.lookup(third).blocks == 2


def test_a_hit_goes_on_in_the_copy_of_another_request() -> None:
    """Blocks 0 and 1 come from the older request, 2 and 3 from the longer one: the hit uses the second part of it."""
    cache = PrefixKVCache(20, 4)
    old, longer, third = request(0, ((1, 0, 17),)), request(1, ((1, 0, 17),)), request(2, ((1, 0, 17),))
    cache.admit(old, NO_HIT, 8)
    cache.admit(longer, NO_HIT, 17)
    cache.admit(third, cache.lookup(third), 17)
    assert cache.used == 2 + 5 + 1
    cache.check([(old, 8), (longer, 17), (third, 17)])
    cache.release(longer, 17)
    assert cache.used == 2 + 2 + 1
    cache.check([(old, 8), (third, 17)])


def test_a_complete_hit_does_not_grow() -> None:
    """All full blocks before the last token are found, or there is none: nothing is left that could be found later."""
    cache, one = PrefixKVCache(20, 4), request(0, ((1, 0, 8),), 5)
    cache.step_number = 1
    decode(cache, one)
    hit = cache.lookup(request(1, ((1, 0, 8), (2, 0, 1))))
    assert (hit.blocks, hit.may_grow) == (2, False)
    hit = cache.lookup(request(2, ((1, 0, 3),)))
    assert (hit.blocks, hit.may_grow) == (0, False)


@pytest.mark.parametrize("prompt", [((1, 0, 8),), ((1, 0, 2), (2, 0, 6)), ((1, 0, 2), (2, 0, 1), (3, 0, 5))])
def test_blocks_outlive_the_request_that_is_forgotten(prompt: Prompt) -> None:
    """Cached blocks are found though their request is gone, also after pieces shorter than a block, until reused."""
    cache, one, later = PrefixKVCache(6, 4), request(0, prompt), request(1, (*prompt, (9, 0, 4)))
    cache.admit(one, NO_HIT, 8)
    cache.release(one, 8)
    cache.forget(one)
    assert cache.lookup(later).blocks == 2
    cache.take(5)
    assert cache.lookup(later).blocks == 1
    cache.take(1)
    assert cache.lookup(later).blocks == 0


def test_state_tells_which_blocks_are_free_and_which_are_held() -> None:
    """Equal histories give equal states; another order of freeing, and blocks in use, give others."""

    def after(*, freed: tuple[int, ...]) -> object:
        cache, jobs = PrefixKVCache(10, 4), [request(index, ((index, 0, 8),)) for index in range(3)]
        for job in jobs:
            cache.admit(job, NO_HIT, 8)
        for index in freed:
            cache.release(jobs[index], 8)
        return cache.state()

    assert after(freed=(0, 1)) == after(freed=(0, 1))
    states = [after(freed=freed) for freed in ((), (0,), (1,), (0, 1), (1, 0))]
    assert len(set(states)) == len(states)


def test_state_of_a_free_queue_counts_the_blank_blocks() -> None:
    """Blocks without content are part of the state."""
    left, right = VllmFreeQueue(2), VllmFreeQueue(2)
    assert left.state() == right.state()
    right.take(1)
    assert left.state() != right.state()


def test_pieces_of_a_path_are_not_empty() -> None:
    """A run shorter than a block holds the last token of none; blocks from 2 up to 2 are none."""
    path = Trie().path(request(0, ((1, 0, 2), (2, 0, 6)), 5))
    assert [(node is path.nodes[1], first, end) for node, first, end in path.blocks(0, 2, 4)] == [(True, 0, 2)]
    assert not list(path.blocks(2, 2, 4))


def test_check_finds_growing_blocks_in_the_free_queue() -> None:
    """Blocks that a decoding request is making are not free."""
    queue, growing = VllmFreeQueue(0), Extent(Trie().root, 0, 1, Birth(0, 0, 0), refs=0)
    growing.base = 4
    queue.put([growing], 0)
    with pytest.raises(RunError, match="has blocks that a request uses"):
        queue.check(1)


def test_generated_blocks_that_are_reused_are_no_longer_found() -> None:
    """A request with a prompt of three pieces leaves 3 + 1 full blocks, the generated one is reused first."""
    cache, pieces = PrefixKVCache(5, 4), ((1, 0, 4), (2, 0, 4), (3, 0, 4))
    one, later = request(0, pieces, 5), request(1, (*pieces, LONG_ANSWER))
    cache.step_number = 1
    decode(cache, one)
    cache.take(1)
    cache.step_number = 5
    cache.end_decoding(one, 16)
    cache.release(one, 16)
    cache.check([])
    hit = cache.lookup(later)
    assert (hit.blocks, hit.idle_blocks) == (4, 4)
    cache.take(2)
    assert cache.lookup(later).blocks == 3


def test_what_one_request_alone_has_generated_is_idle_once_it_is_gone() -> None:
    """18 tokens leave 4 full blocks, which no request uses and which do not grow."""
    cache, one = decoding_pool()
    cache.end_decoding(one, 18)
    cache.check([(one, 18)])
    cache.release(one, 18)
    cache.check([])
    cache.step_number = 19
    hit = cache.lookup(request(1, ((1, 0, 10), LONG_ANSWER)))
    assert (hit.blocks, hit.idle_blocks, hit.may_grow) == (4, 4, False)


def test_a_cache_without_users_and_cached_blocks_knows_no_tokens() -> None:
    """Runs of tokens are known as long as a request uses them or their blocks are cached."""
    cache, one = PrefixKVCache(6, 4), request(0, ((1, 0, 8), (2, 0, 4)), 5)
    cache.admit(one, NO_HIT, 12)
    cache.release(one, 12)
    cache.take(6)
    assert cache._trie.root.children  # the request can return
    cache.forget(one)
    assert not cache._trie.root.children
    cache.give_back(6)
    cached, asked = request(1, ((1, 0, 8), (2, 0, 4)), 5), request(2, ((1, 0, 8),))
    cache = PrefixKVCache(6, 4)
    cache.admit(cached, NO_HIT, 12)
    cache.release(cached, 12)
    for job in (cached, asked):
        cache.lookup(job)
        cache.forget(job)
    assert cache._trie.root.children
    cache.take(6)
    assert not cache._trie.root.children


def test_to_end_decoding_of_a_request_that_does_not_decode_changes_nothing() -> None:
    """A request that is still prefilling, or has already ended, has no growing blocks to close."""
    cache, one = PrefixKVCache(20, 4), request(0, ((1, 0, 10),))
    cache.admit(one, NO_HIT, 10)
    before = cache.state()
    cache.end_decoding(one, 10)
    assert cache.state() == before
    cache.check([(one, 10)])
    cache, one = decoding_pool()
    cache.end_decoding(one, 18)
    before = cache.state()
    cache.end_decoding(one, 18)
    assert cache.state() == before
