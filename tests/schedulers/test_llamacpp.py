"""llama.cpp's slots, worked out by hand; every step takes a second."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError

from ..helpers.playing import make_policy, play, rows, seen


def test_with_one_slot_requests_come_one_after_the_other() -> None:
    """One slot: the second prompt is read when the first answer is complete."""
    recording = play("llamacpp", {"n_parallel": 1}, [(0, 100, 3), (0, 100, 2)])
    assert seen(recording) == {"a": (1, 3), "b": (4, 5)}


def test_prompts_share_a_batch_and_are_cut_where_it_is_full() -> None:
    """n_batch 100: the answer of a takes one token of the second batch, prompts the other 99."""
    recording = play("llamacpp", {"n_parallel": 2, "n_batch": 100}, [(0, 60, 3), (0, 100, 1)])
    assert rows(recording, "prefill_tokens", "decode_seqs") == [(100, 0), (60, 1), (0, 1)]
    assert seen(recording) == {"a": (1, 3), "b": (2, 2)}


def test_slot_order_decides_and_not_arrival() -> None:
    """The slot that has been idle longest is taken, and prompts are read in slot order.

    a has slot 0, b slot 1. b leaves after step 1 and c takes slot 1; a leaves after step 2 and d takes slot 0. From
    step 3 on d stands before c, which came first, and fills the batch.
    """
    asked = [(0, 5, 2), (0, 5, 1), (0, 219, 1), (0, 150, 1)]
    recording = play("llamacpp", {"n_parallel": 2, "n_batch": 100}, asked)
    assert rows(recording, "prefill_tokens", "decode_seqs") == [(10, 0), (99, 1), (100, 0), (100, 0), (70, 0)]
    assert seen(recording) == {"a": (1, 2), "b": (1, 1), "c": (5, 5), "d": (4, 4)}


@pytest.mark.parametrize(("unified", "finished"), [(True, {"a", "b"}), (False, {"b"})])
def test_a_split_context_refuses_what_a_unified_one_takes(unified: bool, finished: set[str]) -> None:
    """400 tokens for four slots: a request of 300 fits the whole, not a quarter, and one of 100 fits both."""
    recording = play("llamacpp", {"n_ctx": 400, "kv_unified": unified}, [(0, 290, 10), (0, 90, 10)])
    statuses: dict[str, Any] = seen(recording, "status")
    assert {name for name, status in statuses.items() if status == "finished"} == finished
    reasons: dict[str, Any] = seen(recording, "reject_reason")
    said = "prompt 290 + output 10 is longer than the 100 tokens of context of a slot"
    assert reasons["a"] == (None if unified else said)


def test_where_the_pool_runs_full_the_latest_begins_again() -> None:
    """Pool of 4 blocks: two requests of 32 tokens cannot both grow; the second is read again after the first."""
    recording = play("llamacpp", {"n_parallel": 2}, [(0, 31, 8), (0, 31, 8)], blocks=4)
    assert seen(recording, "preemptions") == {"a": 0, "b": 1}
    assert seen(recording, "tokens_emitted") == {"a": 8, "b": 8}


def test_nobody_begins_again_whose_prompt_was_served_in_the_same_step() -> None:
    """Where the pool runs full in the middle of a step, those before in slot order keep what they got.

    12 blocks of one token. a leaves slot 0 after a step, in which b in slot 1 has read 7 tokens. Then c, in slot 0,
    reads its 3 tokens before b, whose next 5 no longer fit: b begins again, though c was seated later. It fits once c
    has left at 3, and reads 8 and 4 tokens.
    """
    asked = [(0, 1, 1), (0, 12, 1), (0.5, 3, 2)]
    recording = play("llamacpp", {"n_parallel": 2, "n_batch": 8}, asked, blocks=12, block_size=1)
    assert seen(recording) == {"a": (1, 1), "b": (5, 5), "c": (2, 3)}
    assert seen(recording, "preemptions") == {"a": 0, "b": 1, "c": 0}


def test_it_goes_with_paged_blocks_only() -> None:
    """A reservation at admission is no cache of this server."""
    with pytest.raises(InputError, match="layout: paged"):
        make_policy("llamacpp", contiguous=True)
