"""What blocks cost: as numbers, and with what they hold."""

from __future__ import annotations

import pytest

from benchmarks.cells import BLOCK_SIZE
from simqueue.kvcache import PagedKVCache, PrefixKVCache
from simqueue.kvcache.base import Hit
from simqueue.request import Job, Request

from .house import Measure

STREAMS = 500
SAID_TOKENS, NEW_TOKENS = 1024, 64


def test_take_and_give_back(benchmark: Measure) -> None:
    """Eight blocks are taken from a pool and put back."""
    kv = PagedKVCache(10_000, BLOCK_SIZE)

    def borrow() -> None:
        kv.take(8)
        kv.give_back(8)

    benchmark(borrow)
    assert kv.used == 0


def test_admit_and_release(benchmark: Measure) -> None:
    """A prompt of 1,024 tokens enters a pool without identities and leaves."""
    kv, job = PagedKVCache(10_000, BLOCK_SIZE), said(0)

    def visit() -> None:
        kv.admit(job, kv.lookup(job), SAID_TOKENS)
        kv.release(job, SAID_TOKENS)

    benchmark(visit)
    assert kv.used == 0


@pytest.fixture
def filled() -> PrefixKVCache:
    """A pool that remembers 500 prompts of 1,024 tokens; nobody uses its blocks."""
    kv = PrefixKVCache(40_000, BLOCK_SIZE)
    for stream in range(STREAMS):
        register(kv, said(stream), SAID_TOKENS)
    return kv


def said(stream: int, more_tokens: int = 0, of_stream: int = -1) -> Job:
    """Return a request with a prompt of a stream's first 1,024 tokens, and perhaps more of another stream."""
    prompt = ((stream, 0, SAID_TOKENS), *([(of_stream, 0, more_tokens)] if more_tokens else []))
    return Job(Request(str(stream), 0.0, SAID_TOKENS + more_tokens, 1, prompt=prompt), stream)


def register(kv: PrefixKVCache, job: Job, tokens: int) -> Hit:
    """Let a prompt enter and leave: its blocks are registered, and free."""
    hit = kv.lookup(job)
    kv.admit(job, hit, tokens)
    kv.release(job, tokens)
    kv.forget(job)
    return hit


def test_lookup(benchmark: Measure, filled: PrefixKVCache) -> None:
    """The start of a prompt is found, its end is not."""
    job = said(STREAMS // 2, NEW_TOKENS)
    assert benchmark(filled.lookup, job).tokens == SAID_TOKENS


def test_registration(benchmark: Measure, filled: PrefixKVCache) -> None:
    """A prompt of which nothing is known enters and leaves; its 64 blocks take the place of older ones."""
    streams = iter(range(2 * STREAMS, 10**9))

    def enter() -> Hit:
        return register(filled, said(next(streams)), SAID_TOKENS)

    assert benchmark(enter).tokens == 0


def test_a_hit_enters_and_leaves(benchmark: Measure, filled: PrefixKVCache) -> None:
    """A prompt whose start is cached enters with new tokens at its end, and leaves."""
    streams = iter(range(2 * STREAMS, 10**9))

    def enter() -> Hit:
        return register(filled, said(1, NEW_TOKENS, next(streams)), SAID_TOKENS + NEW_TOKENS)

    assert benchmark(enter).tokens == SAID_TOKENS
