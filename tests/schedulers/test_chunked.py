"""Chunked prefill on scenarios worked out by hand, steps of one second."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from simqueue.schedulers.keys import ChunkedSettings

from ..helpers.playing import play, rows, seen

WORK = ("start_s", "decode_seqs", "context_tokens", "prefill_tokens", "prefill_seqs")


def test_prompt_takes_what_decodes_leave_of_the_budget() -> None:
    """Decodes first, one token each; prompts in order of admission share the rest."""
    recording = play("chunked", {"max_num_seqs": 4, "max_num_batched_tokens": 8}, [(0.0, 4, 3), (0.0, 10, 2)])
    # step 0: a all 4, b 4 of 10; step 1: a decodes (attends to 5), b its last 6; step 2: both decode (6 + 11)
    assert rows(recording, *WORK) == [(0.0, 0, 0, 8, 2), (1.0, 1, 5, 6, 1), (2.0, 2, 17, 0, 0)]
    assert seen(recording) == {"a": (1.0, 3.0), "b": (2.0, 3.0)}


def test_chunk_is_a_cap_for_each_request() -> None:
    """With chunk_tokens 2 no request gets more than 2 prompt tokens a step, and others use what it leaves."""
    keys = {"max_num_seqs": 4, "max_num_batched_tokens": 8, "chunk_tokens": 2}
    recording = play("chunked", keys, [(0.0, 5, 1), (0.0, 3, 1)])
    assert rows(recording, *WORK) == [(0.0, 0, 0, 4, 2), (1.0, 0, 0, 3, 2), (2.0, 0, 0, 1, 1)]
    assert seen(recording) == {"a": (3.0, 3.0), "b": (2.0, 2.0)}


def test_long_prompt_is_cut_to_the_budget() -> None:
    """A prompt of 20 tokens with a budget of 8 takes steps of 8, 8 and 4 and yields its token after the third."""
    recording = play("chunked", {"max_num_seqs": 4, "max_num_batched_tokens": 8}, [(0.0, 20, 1)])
    assert rows(recording, *WORK) == [(0.0, 0, 0, 8, 1), (1.0, 0, 0, 8, 1), (2.0, 0, 0, 4, 1)]
    assert seen(recording) == {"a": (3.0, 3.0)}


def test_long_prompt_never_delays_a_decode() -> None:
    """While a long prompt is computed, a running answer gets a token in every step."""
    keys = {"max_num_seqs": 4, "max_num_batched_tokens": 8}
    recording = play("chunked", keys, [(0.0, 2, 9), (1.0, 50, 1)])
    # b gets 7 a step beside the decode of a: 50 tokens take 8 steps
    assert seen(recording) == {"a": (1.0, 9.0), "b": (9.0, 9.0)}
    assert seen(recording, "max_itl_s")["a"] == 1.0


def test_admission_takes_the_blocks_of_the_first_chunk_only() -> None:
    """Behind a first chunk others are admitted that the whole prompt would have kept out."""
    asked = [(0.0, 12, 2), (0.0, 8, 1), (0.0, 2, 1)]
    keys = {"max_num_batched_tokens": 256}
    whole = play("chunked", keys, asked, blocks=4, block_size=4)
    # step 0: a takes 3 of 4 blocks, b needs 2, and c may not pass it; a's second token takes the fourth block
    assert seen(whole) == {"a": (1.0, 2.0), "b": (3.0, 3.0), "c": (3.0, 3.0)}
    assert rows(whole, "blocks_used", "running", "waiting") == [(3, 1, 2), (4, 1, 2), (3, 2, 0)]
    cut = play("chunked", keys | {"chunk_tokens": 4}, asked, blocks=4, block_size=4)
    # step 0: one block each; step 1: c has gone, a and b take one more each; step 2: b has gone, a's third block
    assert seen(cut) == {"a": (3.0, 4.0), "b": (2.0, 2.0), "c": (1.0, 1.0)}
    assert rows(cut, "blocks_used", "running", "waiting") == [(3, 3, 0), (4, 2, 0), (3, 1, 0), (4, 1, 0)]


def test_admission_stops_without_seats() -> None:
    """With two seats the third request is scheduled when the first has left, in the step after that."""
    recording = play("chunked", {"max_num_seqs": 2}, [(0.0, 1, 2), (0.0, 1, 5), (0.0, 1, 1)])
    assert seen(recording, "first_scheduled_s") == {"a": 0.0, "b": 0.0, "c": 2.0}
    assert seen(recording)["c"] == (3.0, 3.0)


def test_one_output_token_ends_with_the_prompt() -> None:
    """A request of one output token finishes with its first token and leaves its seat at that instant."""
    recording = play("chunked", {"max_num_seqs": 1}, [(0.0, 4, 1), (0.0, 4, 1)])
    assert seen(recording) == {"a": (1.0, 1.0), "b": (2.0, 2.0)}


def test_budget_below_the_seats_is_refused() -> None:
    """Each running request must be able to decode: a budget below max_num_seqs is an error with both numbers."""
    with pytest.raises(ValidationError, match=r"max_num_batched_tokens\s+must be at least max_num_seqs = 8"):
        ChunkedSettings(max_num_seqs=8, max_num_batched_tokens=7)
