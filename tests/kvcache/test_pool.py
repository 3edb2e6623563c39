"""Pools of KV blocks: how many a request holds, and that none is lost or taken twice."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simqueue.errors import RunError
from simqueue.kvcache import ContiguousKVCache, KVCache, KVCacheSettings, PagedKVCache, PrefixKVCache
from simqueue.kvcache.base import NO_HIT
from simqueue.request import Job, Request

sizes = st.integers(1, 40)
counts = st.integers(1, 500)


def request(prompt_tokens: int, output_tokens: int = 1) -> Request:
    """Return a request of that size."""
    return Request("r", 0.0, prompt_tokens, output_tokens)


@given(sizes, counts, counts)
def test_paged_request_holds_the_blocks_that_its_tokens_fill(block_size: int, before: int, more: int) -> None:
    """Tokens laid into blocks one by one: what they hold, and what further tokens take."""
    kv = PagedKVCache(10_000, block_size)
    assert kv.grows
    asked = request(1000)
    blocks_of = [place // block_size for place in range(before + more)]
    assert kv.held(asked, before) == len(set(blocks_of[:before])) == math.ceil(before / block_size)
    assert kv.growth(asked, before, before + more) == len(set(blocks_of) - set(blocks_of[:before]))
    assert kv.growth(asked, 0, before) == kv.held(asked, before)


@given(sizes, counts, counts)
def test_contiguous_request_holds_its_peak_from_the_beginning(block_size: int, prompt: int, output: int) -> None:
    """Prompt + output - 1 tokens are reserved at admission, and nothing after."""
    kv = ContiguousKVCache(10_000, block_size)
    assert not kv.grows
    asked = request(prompt, output)
    assert kv.growth(asked, 0, 1) == kv.held(asked, 1) == math.ceil((prompt + output - 1) / block_size)
    assert kv.growth(asked, 1, prompt + output - 1) == 0


def test_reservation_may_be_the_same_for_all() -> None:
    """With a maximum length reserved, every request holds that, long or short."""
    kv = ContiguousKVCache(100, 16, reserve_tokens=100)
    assert {kv.held(request(prompt), 1) for prompt in (1, 50, 99)} == {7}


@pytest.mark.parametrize(("prompt", "output", "fits"), [(10, 1, True), (9, 2, True), (10, 2, False), (11, 1, False)])
def test_what_can_ever_fit(prompt: int, output: int, fits: bool) -> None:
    """Ten blocks of one token hold whatever has a prompt + output - 1 of at most ten, in either layout."""
    asked = request(prompt, output)
    for kv in (PagedKVCache(10, 1), ContiguousKVCache(10, 1)):
        assert kv.peak_tokens(asked) == prompt + output - 1
        assert (kv.held(asked, kv.peak_tokens(asked)) <= kv.total) is fits


@given(st.lists(st.integers(-20, 20)))
def test_used_and_free_make_the_pool(moves: list[int]) -> None:
    """After any takes and returns used + free is the pool, and the peak is the most that was ever used."""
    kv = PagedKVCache(30, 16)
    used, peak = 0, 0
    for move in moves:
        if move >= 0 and move <= 30 - used:
            kv.take(move)
        elif move < 0 and -move <= used:
            kv.give_back(-move)
        else:
            continue
        used += move
        peak = max(peak, used)
        assert (kv.used, kv.free, kv.peak_used) == (used, 30 - used, peak)


def test_pool_refuses_what_it_does_not_have() -> None:
    """Taking more than is free, returning more than is used, or a negative number is an error with the numbers."""
    kv: KVCache = PagedKVCache(10, 16)
    kv.take(4)
    with pytest.raises(RunError, match="cannot take 7 blocks, 6 of 10 are free"):
        kv.take(7)
    with pytest.raises(RunError, match="cannot give back 5 blocks, 4 are in use"):
        kv.give_back(5)
    for action in (kv.take, kv.give_back):
        with pytest.raises(RunError, match="-1 blocks"):
            action(-1)
    assert (kv.used, kv.free) == (4, 6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("blocks", 0),
        ("blocks", -3),
        ("blocks", 4.5),
        ("block_size", 0),
        ("block_size", 16.5),
        ("watermark", 1.0),
        ("watermark", -0.1),
        ("memory_share", 0.0),
        ("memory_share", 1.1),
        ("layout", "pages"),
    ],
)
def test_impossible_pools_are_refused(key: str, value: object) -> None:
    """Numbers of blocks and tokens are whole and positive, shares are shares."""
    with pytest.raises(ValidationError, match=key):
        KVCacheSettings.model_validate({key: value})


def test_prefix_caching_needs_pages() -> None:
    """Reserved memory is not shared: prefix caching goes with the paged layout alone, where both are spelt out."""
    for layout, caching in (("paged", True), ("paged", None), ("contiguous", False), ("contiguous", None)):
        assert KVCacheSettings.model_validate({"layout": layout, "prefix_caching": caching}).layout == layout
    with pytest.raises(ValidationError, match="prefix_caching"):
        KVCacheSettings.model_validate({"layout": "contiguous", "prefix_caching": True})


def test_smallest_pool_has_one_block() -> None:
    """One block, or as many as the GPU has room for, is a pool."""
    assert KVCacheSettings.model_validate({"blocks": 1}).blocks == 1
    assert KVCacheSettings.model_validate({"blocks": "auto"}).blocks == "auto"


@pytest.mark.parametrize(("others_run", "admitted"), [(False, [3, 4]), (True, [3])])
def test_watermark_counts_while_others_run(others_run: bool, admitted: list[int]) -> None:
    """Of four free blocks one stays free at an admission, unless the request would run alone."""
    kv = PagedKVCache(4, 16, watermark_blocks=1)
    newcomer = Job(request(80), 0)
    fitting = [blocks for blocks in (3, 4, 5) if kv.can_admit(newcomer, NO_HIT, 16 * blocks, others_run=others_run)]
    assert fitting == admitted
    assert kv.free == 4  # a question takes nothing


def test_check_finds_a_block_that_nobody_holds() -> None:
    """`check` compares free and held blocks with the pool."""
    kv = PagedKVCache(10, 16)
    one = Job(request(40), 0)
    kv.admit(one, NO_HIT, 40)
    kv.check([(one, 40)])
    kv.take(1)
    with pytest.raises(RunError, match=r"6 free \+ 3 held blocks differ from the pool's 10"):
        kv.check([(one, 40)])
    kv.give_back(1)
    kv.release(one, 40)
    assert kv.free == 10


def test_a_prompt_that_goes_on_takes_the_blocks_of_its_growth() -> None:
    """From 40 to 80 tokens a paged request takes 2 blocks of 16 more; a reservation takes none."""
    paged, reserved = PagedKVCache(20, 16), ContiguousKVCache(20, 16)
    one = Job(request(100), 0)
    for kv, used in ((paged, 5), (reserved, 7)):
        kv.admit(one, NO_HIT, 40)
        kv.extend(one, kv.growth(one.request, 40, 80), 80)
        assert kv.used == used
        kv.check([(one, 80)])


def test_a_pool_tells_what_it_reserves() -> None:
    """Nothing if blocks are taken as needed; the same number of tokens for all requests; or each request's own."""
    assert PagedKVCache(10, 16).reserve_tokens is None
    assert ContiguousKVCache(10, 16, reserve_tokens=100).reserve_tokens == 100
    assert ContiguousKVCache(10, 16).reserve_tokens == "request_max"


@pytest.mark.parametrize(("key", "most"), [("blocks", 10**12), ("block_size", 10**6)])
def test_counts_beyond_any_machine_are_refused_with_the_bound(key: str, most: int) -> None:
    """A pool of 10**12 blocks is a number and takes no memory; larger ones are mistakes."""
    assert getattr(KVCacheSettings.model_validate({key: most}), key) == most
    with pytest.raises(ValidationError, match=key):
        KVCacheSettings.model_validate({key: most + 1})
    kv = PrefixKVCache(10**12, 16)
    kv.take(10**6)
    assert kv.free == 10**12 - 10**6
