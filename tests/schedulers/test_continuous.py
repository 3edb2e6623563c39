"""Continuous batching with whole prompts, mixed and separate, on scenarios worked out by hand."""

from __future__ import annotations

from ..helpers.playing import play, rows, seen

MIXED = {"max_num_seqs": 4, "max_num_batched_tokens": 8}
SEPARATE = MIXED | {"prefill": "separate"}
WORK = ("start_s", "decode_seqs", "context_tokens", "prefill_tokens", "running")


def test_mixed_prompts_enter_whole_beside_decodes() -> None:
    """A prompt enters when the budget less the running decodes holds all of it, and no request passes the head."""
    recording = play("continuous", MIXED, [(0.0, 5, 3), (0.0, 4, 2), (0.0, 2, 1)])
    # step 0: a; 3 left, b needs 4 and c may not pass; step 1: a decodes, 7 left: b and c; step 2: a and b end
    assert rows(recording, *WORK) == [(0.0, 0, 0, 5, 1), (1.0, 1, 6, 6, 3), (2.0, 2, 7 + 5, 0, 2)]
    assert seen(recording) == {"a": (1.0, 3.0), "b": (2.0, 3.0), "c": (2.0, 2.0)}


def test_budget_counts_decodes() -> None:
    """A prompt as long as the budget waits while anything decodes; one token shorter per decode enters."""
    waits = play("continuous", MIXED, [(0.0, 1, 4), (1.0, 8, 1)])
    assert seen(waits)["b"] == (5.0, 5.0)
    enters = play("continuous", MIXED, [(0.0, 1, 4), (1.0, 7, 1)])
    assert seen(enters)["b"] == (2.0, 2.0)


def test_prompt_above_the_budget_runs_alone() -> None:
    """A prompt longer than the budget waits until nothing runs, then runs whole in a step of its own."""
    for keys in (MIXED, SEPARATE):
        recording = play("continuous", keys, [(0.0, 2, 3), (0.0, 20, 1), (0.0, 1, 1)])
        assert seen(recording) == {"a": (1.0, 3.0), "b": (4.0, 4.0), "c": (5.0, 5.0)}
        assert rows(recording, "start_s", "prefill_tokens", "running")[-2:] == [(3.0, 20, 1), (4.0, 1, 1)]


def test_separate_prompts_go_first_and_decodes_wait() -> None:
    """Prompts take a step of their own with the whole budget; decodes miss that step."""
    recording = play("continuous", SEPARATE, [(0.0, 4, 3), (1.0, 4, 2)])
    # step 1 prefills b while a waits; step 2 decodes both (5 + 5); step 3 decodes a (6)
    assert rows(recording, *WORK) == [(0.0, 0, 0, 4, 1), (1.0, 0, 0, 4, 2), (2.0, 2, 10, 0, 2), (3.0, 1, 6, 0, 1)]
    assert seen(recording, "first_token_s", "finish_s", "max_itl_s") == {"a": (1.0, 4.0, 2.0), "b": (2.0, 3.0, 1.0)}


def test_separate_budget_is_whole() -> None:
    """Decodes that wait take nothing of the budget of a step of prompts."""
    recording = play("continuous", SEPARATE, [(0.0, 1, 4), (1.0, 8, 1)])
    assert seen(recording) == {"a": (1.0, 5.0), "b": (2.0, 2.0)}


def test_recomputed_context_is_a_whole_prompt_again() -> None:
    """A preempted request comes back with prompt and tokens in one piece, once all of it fits."""
    recording = play("continuous", {"max_num_batched_tokens": 256}, [(0.0, 2, 5), (0.0, 2, 5)], blocks=4, block_size=2)
    # both hold 1 block, then 2; at 3 s a needs a third and takes it from b, which has made 3 tokens and needs
    # 5 tokens = 3 blocks to return: at 5 s, when a has left
    assert seen(recording) == {"a": (1.0, 5.0), "b": (1.0, 7.0)}
    assert rows(recording, "start_s", "prefill_tokens", "blocks_used", "waiting", "preempted") == [
        (0.0, 4, 2, 0, 0),
        (1.0, 0, 4, 0, 0),
        (3.0, 0, 3, 1, 1),
        (4.0, 0, 3, 1, 0),
        (5.0, 5, 3, 0, 0),
        (6.0, 0, 3, 0, 0),
    ]
