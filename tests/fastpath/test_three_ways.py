"""Folding steps and counting instead of walking change nothing: random scenarios, all ties on purpose."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.steptime import StepTime
from simqueue.steptime.linear import LinearStepTime

from ..helpers.exact_times import CONSTANT, ROUGH_LINEAR, TICK_S
from ..helpers.profiles import examples
from .three_ways import Case, Pool, assert_three_ways_agree

STEP_TIMES: tuple[StepTime, ...] = (
    CONSTANT,
    CONSTANT,
    LinearStepTime(2**-8, 2**-12, 2**-9, 2**-13, 2**-16),
    ROUGH_LINEAR,
)


@st.composite
def traffic(draw: st.DrawFn) -> list[Request]:
    """Requests that tie in every way, some of whose clients give up, some of which share prompts and answers."""
    requests: list[Request] = []
    tick = 0
    for index in range(draw(st.integers(1, 12))):
        tick += draw(st.sampled_from([0, 0, 0, 1, 1, 2, 5, 20]))
        prompt = draw(st.integers(1, 6) | st.integers(1, 40))
        output = draw(st.integers(1, 4) | st.integers(4, 40))
        patience = draw(st.none() | st.none() | st.integers(0, 40))
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
    seats = draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
    scheduler = draw(st.sampled_from(["chunked", "continuous", "vllm", "vllm", "vllm-v0", "static", "llamacpp"]))
    if scheduler == "static":
        return scheduler, {"max_num_seqs": seats, "release": draw(st.sampled_from(["wave_end", "own_end"]))}
    if scheduler == "llamacpp":
        return scheduler, {"n_parallel": seats, "n_batch": draw(st.integers(seats, 80))}
    keys: dict[str, Any] = {
        "max_num_seqs": seats,
        "max_num_batched_tokens": draw(st.integers(seats, seats + 12) | st.integers(seats + 12, 80)),
    }
    if scheduler == "chunked":
        keys["chunk_tokens"] = draw(st.none() | st.integers(1, 9))
        keys["order"] = draw(st.sampled_from(["fcfs", "shortest_output", "priority"]))
    elif scheduler == "continuous":
        keys["prefill"] = draw(st.sampled_from(["mixed", "separate"]))
    elif scheduler == "vllm-v0":
        keys["enable_chunked_prefill"] = draw(st.booleans())
        keys["watermark"] = draw(st.sampled_from([0.0, 0.01]))
    else:
        keys["policy"] = draw(st.sampled_from(["fcfs", "fcfs", "priority"]))
        keys["async_scheduling"] = draw(st.booleans())
        keys["long_prefill_token_threshold"] = draw(st.sampled_from([0, 0, 3]))
        keys["enable_chunked_prefill"] = draw(st.sampled_from([True, True, False]))
    return scheduler, keys


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A scenario in a pool that thrashes more often than not, with or without a horizon that cuts it."""
    requests = draw(traffic())
    scheduler, keys = draw(policies())
    size = draw(st.sampled_from([1, 2, 3, 4, 16]))
    largest = -(-max(request.prompt_tokens + request.output_tokens - 1 for request in requests) // size)
    blocks = largest + draw(st.sampled_from([0, 0, 1, 2, 3, 8, 40]))
    layouts = {"static": ["paged", "contiguous"], "llamacpp": ["paged"], "vllm-v0": ["paged"]}.get(
        scheduler, ["paged", "prefix", "prefix", "contiguous"]
    )
    horizon = draw(st.none() | st.none() | st.integers(1, 120))
    return Case(
        requests,
        scheduler,
        keys,
        Pool(draw(st.sampled_from(layouts)), blocks, size, draw(st.sampled_from([0, 0, 1]))),
        draw(st.sampled_from(STEP_TIMES)),
        float("inf") if horizon is None else horizon * TICK_S,
    )


@examples(150, thorough=1500)
@given(cases())
def test_fast_stepped_and_walked_runs_leave_the_same_bytes(case: Case) -> None:
    """Every table of the three ways is the same, with thrash, cancels, shared prefixes, and horizons inside folds."""
    assert_three_ways_agree(case)
