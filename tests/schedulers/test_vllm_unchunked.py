"""vLLM's V1 scheduler without chunked prefill, by hand: prompts stop admission or are passed over."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.kvcache import PagedKVCache, PrefixKVCache
from simqueue.request import Job, Request
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1, VllmV1Rules

from ..helpers.playing import both_ways, seen
from ..helpers.playing_vllm import play

WITHOUT_CHUNKING = [(0.0, 60, 1), (0.0, 60, 1), (0.0, 30, 1), (0.0, 10, 1)]


@pytest.mark.parametrize(("overflow", "steps"), [("stop", [60, 100]), ("skip", [100, 60])])
def test_without_chunking_a_prompt_beyond_the_budget_stops_or_is_passed_over(overflow: Any, steps: list[int]) -> None:
    """Newer versions stop there; older ones go on with those behind it."""
    recording = play(
        WITHOUT_CHUNKING,
        max_num_batched_tokens=100,
        enable_chunked_prefill=False,
        rules=VllmV1Rules(unchunked_overflow=overflow),
    )
    assert recording.steps["prefill_tokens"].tolist() == steps


def test_an_arrival_is_seen_behind_one_that_is_passed_over() -> None:
    """Who comes behind a prompt that is passed over may start at once, while equal decode steps are under way."""
    recording = play(
        [(0.0, 16, 10), (0.5, 100, 1), (3.5, 10, 1)],
        max_num_batched_tokens=100,
        enable_chunked_prefill=False,
        rules=VllmV1Rules(unchunked_overflow="skip"),
    )
    assert seen(recording, "first_scheduled_s") == {"a": 0.0, "b": 10.0, "c": 4.0}


def test_passed_over_prompts_come_back_in_reversed_order() -> None:
    """Those passed over in a step stand in front again, the last of them first."""
    recording = play(
        [(0.0, 90, 1), (0.0, 60, 1), (0.0, 70, 1)],
        max_num_batched_tokens=100,
        enable_chunked_prefill=False,
        rules=VllmV1Rules(unchunked_overflow="skip"),
    )
    assert seen(recording, "first_scheduled_s") == {"a": 0.0, "b": 2.0, "c": 1.0}


@pytest.mark.parametrize("overflow", ["stop", "skip"])
def test_a_cached_prompt_that_lacks_blocks_stops_admission(overflow: Any) -> None:
    """What counts against the budget is what is left to compute: with its hits it fits, and blocks stop it for all."""
    prompt = ((1, 0, 64),)
    requests = [
        Request("a", 0.0, 64, 1, prompt=prompt),
        Request("hog", 1.0, 33, 14),
        Request("b", 2.0, 80, 1, prompt=(*prompt, (2, 0, 16))),
        Request("c", 2.0, 10, 1),
    ]
    recording = play(
        requests,
        blocks=7,
        caching=True,
        max_num_batched_tokens=80,
        max_num_seqs=80,
        enable_chunked_prefill=False,
        rules=VllmV1Rules(unchunked_overflow=overflow),
    )
    scheduled_s = seen(recording, "first_scheduled_s")
    assert scheduled_s["b"] == scheduled_s["c"] == 15.0
    assert seen(recording, "cached_tokens")["b"] == 64


def test_without_chunking_a_context_beyond_the_budget_is_refused() -> None:
    """A prompt, or one grown by its answer, that could never be computed at once is turned away with the numbers."""
    recording = play(
        [(0.0, 101, 1), (0.0, 95, 7), (0.0, 95, 6)], max_num_batched_tokens=100, enable_chunked_prefill=False
    )
    assert seen(recording, "status") == {"a": "rejected", "b": "rejected", "c": "finished"}
    assert "max_num_batched_tokens is 100" in seen(recording, "reject_reason")["a"]


@pytest.mark.parametrize(("output", "first"), [(3, "b"), (4, "c"), (5, "b")])
def test_two_passed_over_prompts_change_places_at_every_step(output: int, first: str) -> None:
    """Old versions without chunking: b and c need the whole budget and wait for a, which decodes output - 1 times.

    At each of these steps both are passed over and come back in reversed order, also if equal steps are folded.
    """
    rules = VllmV1Rules(unchunked_overflow="skip")
    keys = {"max_num_seqs": 4, "max_num_batched_tokens": 20, "enable_chunked_prefill": False}
    recording = play([(0.0, 10, output), (0.5, 20, 1), (0.5, 20, 1)], rules=rules, **keys)
    finish_s = seen(recording, "finish_s")
    assert finish_s["a"] == output
    assert sorted(finish_s, key=finish_s.__getitem__) == ["a", first, "c" if first == "b" else "b"]


def test_prompts_are_not_passed_over_if_no_budget_is_left() -> None:
    """a and b take the whole budget of the first step; c and d change places once, at 1 s, beside a's decode."""
    rules = VllmV1Rules(unchunked_overflow="skip")
    keys = {"max_num_seqs": 4, "max_num_batched_tokens": 20, "enable_chunked_prefill": False}
    recording = play([(0.0, 10, 2), (0.0, 10, 1), (0.0, 20, 1), (0.0, 20, 1)], rules=rules, **keys)
    assert seen(recording, "finish_s") == {"a": 2.0, "b": 1.0, "c": 4.0, "d": 3.0}


def test_one_passed_over_prompt_keeps_no_steps_apart() -> None:
    """Alone in the queue it has no other place to come back to: the plan holds until a makes its last token."""
    flags = {"max_num_seqs": 4, "max_num_batched_tokens": 20, "enable_chunked_prefill": False}
    rules = VllmV1Rules(unchunked_overflow="skip")
    policy = VllmV1(VllmV1Settings.model_validate(flags), PagedKVCache(100, 16), RequestLimits(), rules)
    repeats = []
    for index, asked in enumerate([(0.0, 10, 9), (0.5, 20, 1), (0.5, 20, 1)]):
        policy.add(Job(Request(str(index), *asked), index))
        plan = policy.plan(float(index))
        assert plan is not None
        policy.commit(plan)
        repeats.append(plan.repeat)
    assert repeats == [1, 8, 1]


def test_a_prompt_whose_cached_blocks_are_reused_becomes_too_long_and_is_passed_over() -> None:
    """Unchunked, old versions: h lacks blocks at first; at 8 s its rest is beyond the budget, and s goes before it.

    Blocks of one token, a pool of 19. x leaves 9 cached blocks at 1 s. In step t the decodes of q and r hold 2 (t + 1)
    blocks; from 10 on they reuse those of x, the last one first. At 8 s they hold 18, one cached block is left, so
    16 tokens of h are to be computed with a budget of 17 - 2.
    """
    flags = VllmV1Settings(max_num_seqs=8, max_num_batched_tokens=17, enable_chunked_prefill=False)
    asked = [
        Request("x", 0.0, 9, 1, prompt=((1, 0, 9),)),
        Request("q", 0.0, 1, 16),
        Request("r", 0.0, 1, 16),
        Request("h", 1.5, 17, 1, prompt=((1, 0, 9), (2, 0, 8))),
        Request("s", 1.5, 1, 1),
    ]

    def made() -> VllmV1:
        return VllmV1(flags, PrefixKVCache(19, 1), RequestLimits(), VllmV1Rules(unchunked_overflow="skip"))

    recording = both_ways(made, asked)
    scheduled_s = seen(recording, "first_scheduled_s")
    assert scheduled_s["s"] == 8.0
    assert scheduled_s["h"] > 8.0
