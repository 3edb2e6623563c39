"""A backlog played in steps, against the schedulers themselves and against plays by hand."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from simqueue.kvcache import PagedKVCache
from simqueue.request import Job, Request
from simqueue.schedulers import Policy
from simqueue.schedulers.base import Plan
from simqueue.schedulers.chunked import Chunked
from simqueue.schedulers.continuous import Continuous
from simqueue.schedulers.keys import ChunkedSettings, ContinuousSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.theory.backlog import Backlog
from simqueue.theory.limits import Server
from simqueue.theory.played import QUANTILE, SECTIONS, spread

REQUESTS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=12)
ROUNDS = 4


def played(policy: Policy, pairs: list[tuple[int, int]], requests: int) -> dict[str, int]:
    """Let a scheduler serve the requests again and again, until so many have left; return its sums."""
    queue = (Job(Request(str(i), 0.0, *pair), i) for i, pair in enumerate(cycle(pairs)))
    sums = dict.fromkeys(("steps", "decodes", "prompt_tokens", "evictions", "done"), 0)
    while True:
        while policy.waiting_count < 30:
            policy.add(next(queue))
        plan = policy.plan(0.0)
        assert isinstance(plan, Plan)
        if sums["done"] >= requests:
            return sums
        policy.take(plan, plan.repeat - 1)
        sums["steps"] += plan.repeat
        sums["decodes"] += plan.batch.decode_seqs * plan.repeat
        sums["prompt_tokens"] += plan.batch.prefill_tokens
        sums["evictions"] += len(plan.preempted)
        policy.commit(plan)
        sums["done"] += len(plan.finishing)


def sums_of(backlog: Backlog) -> dict[str, int]:
    """Return the sums over the steps of a backlog up to the end of its last request."""
    contents = backlog.contents[: backlog.done[-1]]
    return {
        "steps": sum(one.steps for one in contents),
        "decodes": sum(one.steps * one.decodes for one in contents),
        "prompt_tokens": sum(one.prompt_tokens for one in contents),
        "evictions": backlog.evictions,
        "done": len(backlog.done),
    }


def whole(seats: int, pool: int, prefill: str) -> tuple[Policy, Server]:
    """Return continuous batching with blocks of one token, and its description."""
    flags = ContinuousSettings(max_num_seqs=seats, max_num_batched_tokens=60, prefill=prefill)
    policy = Continuous(flags, PagedKVCache(pool, 1), RequestLimits(None, True))
    kind = "mixed" if prefill == "mixed" else "separate"
    return policy, Server(kind, seats, 60, None, pool, 1)


@pytest.mark.parametrize("prefill", ["mixed", "separate"])
@settings(max_examples=60)
@given(pairs=REQUESTS, seats=st.integers(1, 6), pool=st.integers(42, 120))
def test_whole_prompts_are_played_as_the_scheduler_plays_them(
    prefill: str, pairs: list[tuple[int, int]], seats: int, pool: int
) -> None:
    """With blocks of one token all sums are those of continuous batching, evictions included."""
    policy, server = whole(seats, pool, prefill)
    backlog = Backlog(cycle(pairs), server)
    requests = ROUNDS * len(pairs)
    backlog.play(requests, (0, 10_000))
    assert sums_of(backlog) == played(policy, pairs, requests)


@settings(max_examples=60)
@given(pairs=REQUESTS, seats=st.integers(1, 6), budget=st.integers(6, 40), chunk=st.none() | st.integers(1, 20))
def test_chunks_are_played_as_the_scheduler_plays_them(
    pairs: list[tuple[int, int]], seats: int, budget: int, chunk: int | None
) -> None:
    """Without a shortage of blocks all sums are those of chunked prefill."""
    flags = ChunkedSettings(max_num_seqs=seats, max_num_batched_tokens=budget, chunk_tokens=chunk)
    policy = Chunked(flags, PagedKVCache(1000, 1), RequestLimits(None, True))
    backlog = Backlog(cycle(pairs), Server("chunked", seats, budget, chunk, 1000, 1))
    requests = ROUNDS * len(pairs)
    backlog.play(requests, (0, 10_000))
    assert sums_of(backlog) == played(policy, pairs, requests)


@settings(max_examples=40)
@given(pairs=REQUESTS, seats=st.integers(1, 6), pool=st.integers(42, 80))
def test_what_is_computed_again_is_not_new(pairs: list[tuple[int, int]], seats: int, pool: int) -> None:
    """Each prompt is new once, whatever is evicted: those that are complete, and parts of those that are not yet."""
    backlog = Backlog(cycle(pairs), Server("chunked", seats, 20, None, pool, 1))
    backlog.play(ROUNDS * len(pairs), (0, 10_000))
    tokens, prompts = (sum(getattr(one, name) for one in backlog.contents) for name in ("new_tokens", "new_prompts"))
    assert len(backlog.done) <= prompts
    assert tokens <= sum(one.prompt_tokens for one in backlog.contents)
    if len({prompt for prompt, _ in pairs}) == 1:
        assert 0 <= tokens - prompts * pairs[0][0] <= 30 * (seats + 1)
    if not backlog.evictions:
        assert tokens == sum(one.prompt_tokens for one in backlog.contents)


def test_a_prefix_cache_finds_what_is_left_of_an_evicted_request() -> None:
    """Evicted by hand: two requests of 6 + 8 tokens in a pool of 20; the second returns with the tokens still there.

    Both have 10 tokens after four decodes, so the pool is full, and the second is evicted. The first takes three of its
    ten tokens until it ends, with 13. Then the second finds its first seven, and computes four: ten and the one made
    last, less seven. A third request with 6 tokens comes with it.
    """
    pairs = [(6, 8), (6, 8)]
    computed = {}
    for keeps in (True, False):
        backlog = Backlog(cycle(pairs), Server("mixed", 2, None, None, 20, 1, keeps_evicted=keeps))
        backlog.play(2, (0, 100))
        computed[keeps] = [one.prompt_tokens for one in backlog.contents if one.prompt_tokens]
    assert computed[True][:2] == [6 + 6, 4 + 6]
    assert computed[False][:2] == [6 + 6, 11 + 6]


def test_bounds_have_students_quantile() -> None:
    """The stored quantile is the one of SciPy for the degrees of freedom that the sections have."""
    assert stdtrit(SECTIONS - 1, 0.975) == pytest.approx(QUANTILE, rel=1e-12)


@pytest.mark.parametrize("unit", [1, 250, 300, 2**17, 2**33])
def test_the_requests_of_a_play_depend_on_the_order_of_lengths_alone(unit: int) -> None:
    """In larger units the same ones represent the sample, however many bits its lengths have."""
    prompts, outputs = np.random.default_rng(3).geometric(0.2, size=(2, 3000))
    assert spread(unit * prompts, unit * outputs, 900).tolist() == spread(prompts, outputs, 900).tolist()
