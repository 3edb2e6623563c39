"""Preemption by recompute: who gives way, where it goes, what it costs. Worked out by hand, steps of one second."""

from __future__ import annotations

import pytest

import simqueue as sq
from simqueue.request import Request

from ..helpers.playing import play, rows, seen

WIDE = {"max_num_batched_tokens": 256}


def test_latest_admitted_gives_way_and_its_tokens_stay() -> None:
    """The victim keeps what its client has seen, waits, is prefilled with prompt and tokens, and goes on."""
    recording = play("chunked", WIDE, [(0.0, 2, 5), (0.0, 2, 5)], blocks=4, block_size=2)
    # tokens of a: 1 2 3 4 5; of b: 1 2 3 and, after its 4 cached tokens were lost at 3 s, 6 and 7
    assert seen(recording) == {"a": (1.0, 5.0), "b": (1.0, 7.0)}
    assert seen(recording, "preemptions", "recomputed_tokens", "max_itl_s") == {"a": (0, 0, 1.0), "b": (1, 4, 3.0)}
    assert rows(recording, "start_s", "repeat", "decode_seqs", "context_tokens", "prefill_tokens", "preempted") == [
        (0.0, 1, 0, 0, 4, 0),
        (1.0, 2, 2, 6, 0, 0),
        (3.0, 1, 1, 5, 0, 1),
        (4.0, 1, 1, 6, 0, 0),
        (5.0, 1, 0, 0, 5, 0),
        (6.0, 1, 1, 6, 0, 0),
    ]


def test_victims_stand_in_front_in_their_old_order() -> None:
    """Two victims, one after the other, return ahead of a request that waited all the time, in order of admission."""
    asked = [(0.0, 1, 4), (0.0, 1, 4), (0.0, 1, 4), (0.0, 1, 1)]
    recording = play("chunked", WIDE | {"max_num_seqs": 3}, asked, blocks=6, block_size=1)
    # 2 s: c gives way; 3 s: b gives way; 4 s: a has left, b (4 blocks) returns, c (3) does not fit, d may not pass;
    # 5 s: b has left, c (3) and d (1) enter
    assert seen(recording, "finish_s") == {"a": 4.0, "b": 5.0, "c": 7.0, "d": 6.0}
    assert seen(recording, "preemptions", "recomputed_tokens") == {"a": (0, 0), "b": (1, 3), "c": (1, 2), "d": (0, 0)}
    assert seen(recording, "first_scheduled_s")["d"] == 5.0


def test_prompt_takes_the_place_of_decodes_admitted_after_it() -> None:
    """A chunk of an older prompt may cost two younger decodes their seats, though they had got their token."""
    keys = WIDE | {"chunk_tokens": 4}
    recording = play("chunked", keys, [(0.0, 12, 1), (0.0, 1, 3), (0.0, 1, 3)], blocks=12, block_size=1)
    # 2 s: 12 blocks are used; b's token costs c its 2 blocks, a's last 4 tokens cost b its 3
    assert rows(recording, "start_s", "decode_seqs", "prefill_tokens", "blocks_used", "running", "preempted") == [
        (0.0, 0, 6, 6, 3, 0),
        (1.0, 2, 4, 12, 3, 0),
        (2.0, 0, 4, 12, 1, 2),
        (3.0, 0, 6, 6, 2, 0),
    ]
    assert seen(recording) == {"a": (3.0, 3.0), "b": (1.0, 4.0), "c": (1.0, 4.0)}
    assert seen(recording, "recomputed_tokens") == {"a": 0, "b": 2, "c": 2}


def test_nobody_is_admitted_in_a_step_that_preempted() -> None:
    """A victim's blocks may be enough for a shorter request: it still waits for the next step."""
    asked = [(0.0, 3, 3), (0.0, 3, 3), (1.5, 1, 1)]
    recording = play("chunked", WIDE | {"order": "shortest_prompt"}, asked, blocks=7, block_size=1)
    # 1 s: a takes the seventh block, b gives way with 3; at 2 s c, the shorter, enters beside a
    assert rows(recording, "start_s", "blocks_used", "running", "waiting", "preempted") == [
        (0.0, 6, 2, 0, 0),
        (1.0, 4, 1, 1, 1),
        (2.0, 6, 2, 1, 0),
        (3.0, 4, 1, 0, 0),
        (4.0, 5, 1, 0, 0),
    ]
    assert seen(recording) == {"a": (1.0, 3.0), "b": (1.0, 5.0), "c": (3.0, 3.0)}


def test_last_token_of_a_recompute_is_a_decode() -> None:
    """One new token of a request that has output is a decode in the step's sums, even as the end of a recompute."""
    keys = WIDE | {"max_num_seqs": 3, "chunk_tokens": 2}
    recording = play("chunked", keys, [(0.0, 1, 4), (0.0, 1, 4), (0.0, 1, 4)], blocks=6, block_size=1)
    # c returns at 4 s beside b, gives way again at 5 s, and is computed at 6 s (2 tokens) and 7 s (1: a decode,
    # context 3); its next decode, context 4, makes one row with it
    found = rows(recording, "start_s", "repeat", "decode_seqs", "context_tokens", "prefill_tokens", "preempted")
    assert found[-4:] == [
        (4.0, 1, 0, 0, 4, 0),
        (5.0, 1, 0, 0, 2, 1),
        (6.0, 1, 0, 0, 2, 0),
        (7.0, 2, 1, 3, 0, 0),
    ]
    assert seen(recording, "finish_s", "preemptions") == {"a": (4.0, 0), "b": (6.0, 1), "c": (9.0, 2)}


def test_reserved_requests_are_never_preempted() -> None:
    """Contiguous KV takes prompt + output - 1 tokens at admission: the third request waits, no request is preempted."""
    asked = [(0.0, 2, 4), (0.0, 2, 4), (0.0, 2, 4)]
    recording = play("chunked", WIDE, asked, blocks=14, block_size=1, contiguous=True)
    assert rows(recording, "start_s", "blocks_used", "running", "waiting") == [
        (0.0, 10, 2, 1),
        (1.0, 10, 2, 1),
        (4.0, 5, 1, 0),
        (5.0, 5, 1, 0),
    ]
    assert seen(recording, "finish_s", "preemptions") == {"a": (4.0, 0), "b": (4.0, 0), "c": (8.0, 0)}


def test_reservation_of_the_model_maximum_is_the_same_for_all() -> None:
    """With 8 tokens reserved for each, a pool of 16 seats two short requests and not three."""
    asked = [(0.0, 1, 1), (0.0, 1, 1), (0.0, 1, 1)]
    recording = play("chunked", WIDE, asked, blocks=16, block_size=1, contiguous=True, reserve_tokens=8)
    assert rows(recording, "blocks_used", "running", "waiting") == [(16, 2, 1), (8, 1, 0)]


def test_watermark_is_kept_free_only_while_others_run() -> None:
    """A quarter of the pool stays free for those who run; a request that is alone may fill it."""

    def first_scheduled(watermark: float) -> list[float]:
        result = sq.run(
            {
                "step_time": {"kind": "constant", "seconds": 1.0},
                "kv_cache": {"blocks": 8, "block_size": 1, "watermark": watermark},
                "workload": {
                    "requests": [
                        {"arrival_s": 0, "prompt_tokens": 3, "output_tokens": 2},
                        {"arrival_s": 0, "prompt_tokens": 4, "output_tokens": 1},
                        {"arrival_s": 9, "prompt_tokens": 8, "output_tokens": 1},
                    ]
                },
                "policies": {"p": {"scheduler": "chunked"}},
            }
        )
        times: list[float] = result.requests["first_scheduled_s"].tolist()
        return times

    assert first_scheduled(0.0) == [0.0, 0.0, 9.0]
    # 3 used, 4 wanted, 2 to be kept: the second waits until the first has left
    assert first_scheduled(0.25) == [0.0, 2.0, 9.0]


@pytest.mark.parametrize("scheduler", ["static", "chunked", "continuous"])
@pytest.mark.parametrize(
    ("order", "finishing"),
    [
        ("fcfs", "abcd"),
        ("shortest_prompt", "bdca"),
        ("shortest_output", "dbac"),
        ("priority", "cadb"),
        ("deadline", "dbac"),
    ],
)
def test_order_says_who_is_admitted_next(scheduler: str, order: str, finishing: str) -> None:
    """All who arrive at one instant are seen before the first is seated; one seat serves them by the order's key."""
    asked = [
        Request("a", 0.0, 4, 3, priority=1, deadline_s=None),
        Request("b", 0.0, 2, 2, priority=2, deadline_s=8.0),
        Request("c", 0.0, 3, 4, priority=0, deadline_s=None),
        Request("d", 0.0, 2, 1, priority=1, deadline_s=6.0),
    ]
    finish_s = seen(play(scheduler, {"max_num_seqs": 1, "order": order}, asked), "finish_s")
    assert "".join(sorted(finish_s, key=lambda name: finish_s[name])) == finishing
