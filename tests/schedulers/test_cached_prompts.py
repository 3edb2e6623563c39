"""What a policy finds in a prefix cache at which step: worked out by hand, blocks of 4 tokens, steps of one second."""

from __future__ import annotations

import pytest

from simqueue.kvcache import PrefixKVCache
from simqueue.request import Request
from simqueue.schedulers import Chunked, RequestLimits
from simqueue.schedulers.vllm_v0 import VllmV0
from simqueue.simulation import Recording

from ..helpers.playing import both_ways, seen


def play(asked: list[Request], **keys: int) -> Recording:
    """Play folded and step by step."""
    settings = Chunked.Settings.model_validate({"max_num_seqs": 4, "max_num_batched_tokens": 64, **keys})
    return both_ways(lambda: Chunked(settings, PrefixKVCache(100, 4), RequestLimits()), asked)


def request(name: str, arrival_s: float, prompt: tuple[tuple[int, int, int], ...], output_tokens: int) -> Request:
    """Return a request whose output is stream 5."""
    length = sum(piece[2] for piece in prompt)
    return Request(name, arrival_s, length, output_tokens, prompt=prompt, output_stream=5)


@pytest.mark.parametrize(("arrival_s", "cached_tokens"), [(0.5, 16), (1.5, 20), (2.5, 20)])
def test_a_prompt_in_chunks_is_found_as_far_as_it_is_planned(arrival_s: float, cached_tokens: int) -> None:
    """a computes 21 tokens in chunks of 8; b, which is looked up after a's chunk of the step, finds all full blocks."""
    asked = [request("a", 0.0, ((1, 0, 21),), 9), request("b", arrival_s, ((1, 0, 21), (2, 0, 4)), 1)]
    assert seen(play(asked, chunk_tokens=8), "cached_tokens") == {"a": 0, "b": cached_tokens}


@pytest.mark.parametrize(("arrival_s", "cached_tokens"), [(2.5, 4), (3.5, 8), (6.5, 8), (7.5, 12)])
def test_generated_tokens_are_found_in_the_step_that_fills_their_block(arrival_s: float, cached_tokens: int) -> None:
    """a has computed 4 + k tokens with step k, its prompt with step 0: a block is full at 4 s, and one at 8 s."""
    asked = [request("a", 0.0, ((1, 0, 4),), 12), request("b", arrival_s, ((1, 0, 4), (5, 0, 12)), 1)]
    assert seen(play(asked), "cached_tokens") == {"a": 0, "b": cached_tokens}


def test_idle_cached_blocks_count_against_the_watermark() -> None:
    """V0 leaves 1 of 6 blocks free: b's 5 blocks, 4 of them cached and idle, wait until d has given its block back."""
    keys = {"max_num_seqs": 4, "max_num_batched_tokens": 128, "watermark": 0.17}
    settings = VllmV0.Settings.model_validate(keys)
    shared = (1, 0, 64)
    asked = [
        request("a", 0.0, (shared,), 1),
        request("d", 0.0, ((2, 0, 8),), 5),
        request("b", 1.5, (shared, (3, 0, 16)), 1),
    ]
    recording = both_ways(lambda: VllmV0(settings, PrefixKVCache(6, 16), RequestLimits()), asked)
    assert seen(recording, "first_scheduled_s", "finish_s", "cached_tokens") == {
        "a": (0.0, 1.0, 0),
        "d": (0.0, 5.0, 0),
        "b": (5.0, 6.0, 64),
    }
