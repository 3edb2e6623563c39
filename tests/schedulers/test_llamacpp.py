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


FOUR = [(0.0, 200, 400)] * 4


@pytest.mark.parametrize("block_size", [1, 16])
def test_case_68_a_full_context_ends_all_requests_with_an_error(block_size: int) -> None:
    """Four prompts of 200 fill 800 of 1,024 tokens; 56 decodes of four fit, the next does not.

    So each has made 57 tokens when all end, at 57 s. A request that waits takes a slot at that instant.
    """
    asked = [*FOUR, (0.5, 300, 2)]
    keys = {"n_parallel": 4, "n_ctx": 1024}
    recording = play("llamacpp", keys, asked, blocks=10_000, block_size=block_size)
    said = "the context of 1024 tokens was full: all requests in slots ended with an error"
    columns = ("status", "tokens_emitted", "first_token_s", "finish_s", "reject_reason")
    ended = seen(recording, *columns)
    assert [ended[name] for name in "abcd"] == [("rejected", 57, 1.0, 57.0, said)] * 4
    assert ended["e"] == ("finished", 2, 58.0, 59.0, None)
    # each row is steps in a row: the tokens held after its last step
    for repeat, decodes, context, new in rows(recording, "repeat", "decode_seqs", "context_tokens", "prefill_tokens"):
        assert context + decodes * (repeat - 1) + new <= 1024


def test_case_68_where_requests_begin_again_the_context_is_kept_too() -> None:
    """The named choice: the request that was seated last goes, all finish, and a warning counts it."""
    keys = {"n_parallel": 4, "n_ctx": 1024, "when_full": "begin_again"}
    recording = play("llamacpp", keys, FOUR, blocks=10_000, block_size=16)
    assert set(seen(recording, "status").values()) == {"finished"}
    assert seen(recording, "preemptions")["a"] == 0
    assert sum(seen(recording, "preemptions").values()) == int(recording.steps["preempted"].sum()) > 0
    held = [
        context + decodes * (repeat - 1)
        for repeat, decodes, context in rows(recording, "repeat", "decode_seqs", "context_tokens")
    ]
    assert max(held) <= 1024
    (warning,) = recording.warnings
    assert "began again" in warning
    assert "when_full: error" in warning


def test_a_prompt_that_does_not_fit_beside_the_others_ends_them_all() -> None:
    """The server gives a slot to any request: 100 + 950 tokens are more than 1,024, so both end, and c is alone."""
    asked = [(0.0, 100, 400), (9.5, 950, 5), (9.75, 10, 2)]
    recording = play("llamacpp", {"n_parallel": 2, "n_ctx": 1024}, asked, blocks=10_000)
    ended = seen(recording, "status", "tokens_emitted", "finish_s")
    assert ended == {"a": ("rejected", 10, 10.0), "b": ("rejected", 0, 10.0), "c": ("finished", 2, 12.0)}


def test_a_pool_smaller_than_the_context_is_the_context() -> None:
    """4 blocks of 16 tokens: two requests of 31 + 8 cannot both grow beyond 32, and both end with an error at 2 s."""
    keys = {"n_parallel": 2, "n_ctx": 1024}
    recording = play("llamacpp", keys, [(0, 31, 8), (0, 31, 8)], blocks=4)
    assert seen(recording, "status", "tokens_emitted") == dict.fromkeys("ab", ("rejected", 2))


def test_case_68_an_answer_ends_where_the_context_of_its_slot_does() -> None:
    """8,192 tokens in four parts: a prompt of 1,500 has 548 tokens of answer; one of 2,048 has no room for any."""
    keys = {"n_ctx": 8192, "kv_unified": False}
    recording = play("llamacpp", keys, [(0, 1500, 1000), (0, 2047, 1000), (0, 2048, 1)], blocks=10_000)
    assert seen(recording, "status", "tokens_emitted") == {
        "a": ("finished", 548),
        "b": ("finished", 1),
        "c": ("rejected", 0),
    }


def test_case_68_only_requests_that_had_computed_something_count_as_preempted() -> None:
    """Eight prompts of 64 on 12 blocks: three fit, the other five lose their slots with nothing computed.

    A preemption and its recomputed tokens belong together: each request has both or none.
    """
    recording = play("llamacpp", {"n_parallel": 8}, [(0.0, 64, 64)] * 8, blocks=12)
    counts = recording.requests["preemptions"], recording.requests["recomputed_tokens"]
    assert ((counts[0] > 0) == (counts[1] > 0)).all()
    assert (counts[1] >= counts[0]).all()
    assert counts[0].sum() == recording.steps["preempted"].sum()
    assert recording.steps["preempted"][0] == 0


def test_it_goes_with_paged_blocks_only() -> None:
    """A reservation at admission is no cache of this server."""
    with pytest.raises(InputError, match="layout: paged"):
        make_policy("llamacpp", contiguous=True)
