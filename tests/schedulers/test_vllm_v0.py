"""vLLM's V0 scheduler, by hand: steps of one second."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.request import Request
from simqueue.schedulers.vllm_v0 import VllmV0
from simqueue.simulation import Recording

from ..helpers.playing import both_ways, make_policy, rows, seen


def play(asked: list[Any], *, blocks: int = 1000, **keys: Any) -> Recording:
    """Play folded and step by step."""
    flags = {"max_num_seqs": 256, "max_num_batched_tokens": 2048} | keys
    return both_ways(lambda: make_policy(VllmV0, flags, blocks=blocks), asked)


def test_prompts_run_in_steps_of_their_own_and_first() -> None:
    """A newcomer's prompt stalls the decode that runs; then both decode together."""
    recording = play([(0.0, 10, 3), (1.0, 20, 2)])
    assert rows(recording, "decode_seqs", "prefill_tokens", "repeat") == [(0, 10, 1), (0, 20, 1), (2, 0, 1), (1, 0, 1)]
    assert seen(recording) == {"a": (1.0, 4.0), "b": (2.0, 3.0)}


def test_a_step_of_prompts_holds_what_the_budget_allows() -> None:
    """A prompt that does not fit the rest of the budget waits for the next step of prompts, ahead of all decodes."""
    recording = play([(0.0, 600, 2), (0.0, 600, 2), (0.0, 100, 2)], max_num_batched_tokens=1000)
    assert rows(recording, "decode_seqs", "prefill_tokens") == [(0, 600), (0, 700), (3, 0)]


def test_a_prompt_beyond_the_budget_is_dropped() -> None:
    """Without chunking what can never be scheduled is refused with the numbers."""
    recording = play([(0.0, 1001, 2)], max_num_batched_tokens=1000)
    assert seen(recording, "reject_reason") == {"a": "prompt 1001 is longer than max_num_batched_tokens 1000"}


def test_admission_leaves_the_watermark_free() -> None:
    """Of 100 blocks one stays free at every admission: half and half do not run together, 99 alone do, 100 never."""
    halves = play([(0.0, 800, 2), (0.0, 800, 2)], blocks=100)
    assert seen(halves) == {"a": (1.0, 2.0), "b": (3.0, 4.0)}
    together = play([(0.0, 800, 2), (0.0, 784, 2)], blocks=101)
    assert seen(together) == {"a": (1.0, 2.0), "b": (1.0, 2.0)}
    alone = play([(0.0, 1584, 1), (0.0, 1600, 1)], blocks=100)
    assert seen(alone, "status") == {"a": "finished", "b": "rejected"}
    assert "above its watermark" in seen(alone, "reject_reason")["b"]


def test_the_last_to_arrive_is_preempted_and_comes_back_first() -> None:
    """With five blocks the second request is recomputed once the first has left, ahead of one that came later."""
    recording = play([(0.0, 16, 40), (0.0, 32, 40), (20.0, 15, 2)], blocks=5)
    assert seen(recording, "preemptions") == {"a": 0, "b": 1, "c": 0}
    # a: its prompt, then 39 decodes; b: 17 tokens by then, its context again, then 22 decodes
    assert seen(recording, "finish_s")["a"] == 40.0
    assert seen(recording)["b"] == (1.0, 40.0 + 1 + 22)
    assert seen(recording, "first_scheduled_s")["c"] >= 40.0


def test_chunked_decodes_come_first_and_prompts_take_the_rest() -> None:
    """With chunking a decode costs a prompt one token of the budget, and no step is prompts alone."""
    recording = play([(0.0, 16, 10), (0.5, 1000, 2)], max_num_batched_tokens=512, enable_chunked_prefill=True)
    assert rows(recording, "decode_seqs", "prefill_tokens")[:3] == [(0, 16), (1, 511), (1, 489)]
    assert seen(recording)["b"][0] == 3.0


@pytest.mark.parametrize(
    ("lengths", "budget", "first_step"),
    [
        ((50, 40), 100, [90]),  # two rows of 50
        ((51, 40), 100, [51, 40]),  # two rows of 51 are 102
        ((300, 44), 2048, [344]),  # 256 tokens of padding
        ((300, 43), 2048, [300, 43]),  # 257
    ],
)
def test_padded_prompts_count_as_the_longest(lengths: tuple[int, int], budget: int, first_step: list[int]) -> None:
    """Up to 0.2.x rows are as long as the longest, and at most 256 tokens of a step are padding."""
    recording = play([(0.0, n, 1) for n in lengths], max_num_batched_tokens=budget, padded_prompts=True)
    assert recording.steps["prefill_tokens"].tolist() == first_step


def test_seats_are_a_limit() -> None:
    """No more requests run than there are seats."""
    recording = play([(0.0, 10, 2)] * 3, max_num_seqs=2)
    assert seen(recording) == {"a": (1.0, 2.0), "b": (1.0, 2.0), "c": (3.0, 4.0)}


def test_requests_may_name_their_tokens_without_being_found() -> None:
    """V0 is modelled without a prefix cache: equal prompts are computed twice."""
    twin = [Request(name, 0.0, 32, 1, prompt=((1, 0, 32),)) for name in "ab"]
    assert play(twin).steps["prefill_tokens"].tolist() == [64]
