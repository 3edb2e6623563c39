"""Folding steps and counting instead of walking change nothing: random scenarios, all ties on purpose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.steptime import StepTime
from simqueue.steptime.linear import LinearStepTime
from simqueue.steptime.scaled import ScaledStepTime, scaled

from ..helpers.draws import (
    BLOCK_SIZES,
    HORIZONS_S,
    OFTEN,
    OUTPUTS,
    PAUSES,
    PROMPTS,
    SEATS,
    SPARE_BLOCKS,
    SPARE_TOKENS,
)
from ..helpers.exact_times import CONSTANT, ROUGH_LINEAR, TICK_S
from ..helpers.profiles import examples
from .three_ways import Case, Pool, assert_three_ways_agree

COSTS: st.SearchStrategy[StepTime] = st.sampled_from(
    [
        CONSTANT,
        CONSTANT,
        LinearStepTime(2**-8, 2**-12, 2**-9, 2**-13, 2**-16),
        ROUGH_LINEAR,
        scaled(ROUGH_LINEAR, 1.1),
        ScaledStepTime(ROUGH_LINEAR, 0.9),
    ]
)
PATIENCE = st.sampled_from([None] * 82 + [*range(41)])
NAMES = st.sampled_from(["chunked", "continuous", "vllm", "vllm", "vllm-v0", "static", "llamacpp"])
RELEASES = st.sampled_from(["wave_end", "own_end"])
CONTEXTS = st.sampled_from([None] * 121 + [*range(40, 161)])
WHEN_FULL = st.sampled_from([None, "error", "begin_again"])
CHUNKS = st.sampled_from([None] * 9 + [*range(1, 10)])
ORDERS = st.sampled_from(["fcfs", "shortest_output", "priority"])
PREFILLS = st.sampled_from(["mixed", "separate"])
WATERMARKS = st.sampled_from([0.0, 0.01])
POLICIES = st.sampled_from(["fcfs", "fcfs", "priority"])
THRESHOLDS = st.sampled_from([0, 0, 3])


@st.composite
def traffic(draw: st.DrawFn) -> list[Request]:
    """Requests that tie in every way, some of whose clients give up, some of which share prompts and answers."""
    requests: list[Request] = []
    tick = 0
    for index in range(draw(st.integers(1, 12))):
        tick += draw(PAUSES)
        prompt = draw(PROMPTS)
        output = draw(OUTPUTS)
        patience = draw(PATIENCE)
        stream = draw(st.integers(1, 3))
        requests.append(
            Request(
                str(index),
                tick * TICK_S,
                prompt,
                output,
                priority=draw(st.integers(0, 2)),
                prompt=((stream, 0, prompt),) if draw(st.booleans()) else None,
                output_stream=stream if draw(st.booleans()) else None,
                gives_up_s=None if patience is None else (tick + patience) * TICK_S,
            )
        )
    return requests


@st.composite
def policies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Names and keys of every policy."""
    seats = draw(SEATS)
    scheduler = draw(NAMES)
    if scheduler == "static":
        return scheduler, {"max_num_seqs": seats, "release": draw(RELEASES)}
    if scheduler == "llamacpp":
        context = {
            "n_ctx": draw(CONTEXTS),
            "kv_unified": draw(st.booleans()),
            "when_full": draw(WHEN_FULL),
        }
        return scheduler, {"n_parallel": seats, "n_batch": draw(st.integers(1, 80)), **context}
    keys: dict[str, Any] = {
        "max_num_seqs": seats,
        "max_num_batched_tokens": seats + draw(SPARE_TOKENS),
    }
    if scheduler == "chunked":
        keys["chunk_tokens"] = draw(CHUNKS)
        keys["order"] = draw(ORDERS)
    elif scheduler == "continuous":
        keys["prefill"] = draw(PREFILLS)
    elif scheduler == "vllm-v0":
        keys["enable_chunked_prefill"] = draw(st.booleans())
        keys["watermark"] = draw(WATERMARKS)
    else:
        keys["policy"] = draw(POLICIES)
        keys["async_scheduling"] = draw(st.booleans())
        keys["long_prefill_token_threshold"] = draw(THRESHOLDS)
        keys["enable_chunked_prefill"] = draw(OFTEN)
    return scheduler, keys


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A scenario in a pool that thrashes more often than not, with or without a horizon that cuts it."""
    requests = draw(traffic())
    scheduler, keys = draw(policies())
    size = draw(BLOCK_SIZES)
    largest = -(-max(request.prompt_tokens + request.output_tokens - 1 for request in requests) // size)
    blocks = largest + draw(SPARE_BLOCKS)
    layouts = {"static": ["paged", "contiguous"], "llamacpp": ["paged"], "vllm-v0": ["paged"]}.get(
        scheduler, ["paged", "prefix", "prefix", "contiguous"]
    )
    return Case(
        requests,
        scheduler,
        keys,
        Pool(layouts[draw(st.integers(0, len(layouts) - 1))], blocks, size, (0, 0, 1)[draw(st.integers(0, 2))]),
        draw(COSTS),
        draw(HORIZONS_S),
    )


@examples(150, thorough=1500)
@given(cases())
def test_fast_stepped_and_walked_runs_leave_the_same_bytes(case: Case) -> None:
    """Every table of the three ways is the same, with thrash, cancels, shared prefixes, and horizons inside folds."""
    assert_three_ways_agree(case)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("blocks", [8, 10, 40])
@pytest.mark.parametrize("b_arrives", [0, 3, 9])
def test_two_copies_of_a_block_one_of_them_generated(asynchronous: bool, blocks: int, b_arrives: int) -> None:
    """a generates what b has as its prompt, so equal blocks are computed twice; c and d hit one of the copies.

    Blocks of 4 tokens. Depending on when b comes, the generated copy is the older or the younger one.
    """
    shared, answer = (1, 0, 4), 5
    requests = [
        Request("a", 0.0, 4, 16, prompt=(shared,), output_stream=answer),
        Request("b", b_arrives * TICK_S, 16, 6, prompt=(shared, (answer, 0, 12))),
        Request("c", 12 * TICK_S, 17, 4, prompt=(shared, (answer, 0, 13))),
        Request("d", 30 * TICK_S, 17, 4, prompt=(shared, (answer, 0, 13))),
    ]
    keys = {"max_num_seqs": 4, "max_num_batched_tokens": 32, "async_scheduling": asynchronous}
    case = Case(requests, "vllm", keys, Pool("prefix", blocks, 4), CONSTANT)
    assert_three_ways_agree(case)
    recording = case.play("fast")
    cached = dict(
        zip(recording.requests["request_id"].tolist(), recording.requests["cached_tokens"].tolist(), strict=True)
    )
    assert cached["d"] == 16  # all have left, and of 17 tokens the last is computed again
    assert cached["a"] == 0
