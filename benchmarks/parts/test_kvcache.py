"""The time to take and return blocks, without and with prefix caching."""

from __future__ import annotations

import pytest

from benchmarks.cells import BLOCK_SIZE
from simqueue.kvcache import PagedKVCache, PrefixKVCache
from simqueue.kvcache.base import Hit
from simqueue.request import Job, Request

from .common import Measure

STREAMS = 500
SAID_TOKENS, NEW_TOKENS = 1024, 64


def test_take_and_give_back(benchmark: Measure) -> None:
    """Take eight blocks from a pool and return them."""
    kv = PagedKVCache(10_000, BLOCK_SIZE)

    def borrow() -> None:
        kv.take(8)
        kv.give_back(8)

    benchmark(borrow)
    assert kv.used == 0


def test_admit_and_release(benchmark: Measure) -> None:
    """Admit and release a prompt of 1,024 tokens without prefix caching."""
    kv, job = PagedKVCache(10_000, BLOCK_SIZE), said(0)

    def visit() -> None:
        kv.admit(job, kv.lookup(job), SAID_TOKENS)
        kv.release(job, SAID_TOKENS)

    benchmark(visit)
    assert kv.used == 0


@pytest.fixture
def filled() -> PrefixKVCache:
    """Return a pool with 500 cached prompts of 1,024 tokens, all of whose blocks are free."""
    kv = PrefixKVCache(40_000, BLOCK_SIZE)
    for stream in range(STREAMS):
        register(kv, said(stream), SAID_TOKENS)
    return kv


def said(stream: int, more_tokens: int = 0, of_stream: int = -1) -> Job:
    """Return a request whose prompt is the first 1,024 tokens of a stream, and further tokens of another stream."""
    prompt = ((stream, 0, SAID_TOKENS), *([(of_stream, 0, more_tokens)] if more_tokens else []))
    return Job(Request(str(stream), 0.0, SAID_TOKENS + more_tokens, 1, prompt=prompt), stream)


def register(kv: PrefixKVCache, job: Job, tokens: int) -> Hit:
    """Admit and release a prompt; its blocks are then registered and free."""
    hit = kv.lookup(job)
    kv.admit(job, hit, tokens)
    kv.release(job, tokens)
    kv.forget(job)
    return hit


def test_lookup(benchmark: Measure, filled: PrefixKVCache) -> None:
    """Look up a prompt whose start is cached and whose end is not."""
    job = said(STREAMS // 2, NEW_TOKENS)
    assert benchmark(filled.lookup, job).tokens == SAID_TOKENS


def test_registration(benchmark: Measure, filled: PrefixKVCache) -> None:
    """Admit and release a prompt that is not cached; its 64 blocks evict older ones."""
    streams = iter(range(2 * STREAMS, 10**9))

    def enter() -> Hit:
        return register(filled, said(next(streams)), SAID_TOKENS)

    assert benchmark(enter).tokens == 0


def test_a_hit_enters_and_leaves(benchmark: Measure, filled: PrefixKVCache) -> None:
    """Admit and release a prompt whose start is cached and whose end is new."""
    streams = iter(range(2 * STREAMS, 10**9))

    def enter() -> Hit:
        return register(filled, said(1, NEW_TOKENS, next(streams)), SAID_TOKENS + NEW_TOKENS)

    assert benchmark(enter).tokens == SAID_TOKENS
