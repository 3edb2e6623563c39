"""Random small scenarios for vLLM's V1 scheduler: tight pools, ties, shared tokens, every flag."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from simqueue.kvcache import KVCache, PagedKVCache, PrefixKVCache, VllmFreeQueue
from simqueue.request import Request
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1, VllmV1Rules
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.simulation.options import Observer
from simqueue.steptime import StepTime

from ..helpers.draws import (
    HORIZONS_S,
    OFTEN,
    OUTPUTS,
    PAUSES,
    PROMPTS,
    SEATS,
    SHIFTS_S,
    SPARE_BLOCKS,
    SPARE_TOKENS,
    USUALLY,
)
from ..helpers.exact_times import CONSTANT, EXACT_LINEAR, ROUGH_LINEAR, TICK_S

# Built once: building a strategy with alternatives costs more than drawing from it.
PRIORITIES = st.sampled_from([st.just(0), st.integers(0, 2)])
KINDS = st.sampled_from(["own", "shared", "shared", "copy", "turn", "turn"])
ANSWERS = st.sampled_from([50, 50, 50, 51])
"""Mostly all give the same answer, so that some find what others are making."""
THRESHOLDS = st.sampled_from([0, 0, 0, 1, 3, 5, 9])
POLICIES = st.sampled_from(["fcfs", "fcfs", "priority"])
OVERFLOWS = st.sampled_from(["stop", "stop", "skip"])
BLOCK_SIZES = st.sampled_from([1, 2, 3, 4, 8, 16, 32])
MODEL_LENGTHS = st.sampled_from([None, None, 25, 50])


@dataclass(frozen=True)
class VllmCase:
    """A scenario with one engine."""

    requests: tuple[Request, ...]
    flags: dict[str, Any]
    rules: VllmV1Rules
    blocks: int
    block_size: int
    step_time: StepTime
    watermark_blocks: int = 0
    prefix_caching: bool = False
    unhashed_first: bool = True
    max_model_len: int | None = None
    reject: bool = True
    horizon_s: float = float("inf")

    @property
    def depth(self) -> int:
        """Steps in flight."""
        return 2 if self.flags["async_scheduling"] else 1

    def cache(self) -> KVCache:
        """Return a fresh pool."""
        if not self.prefix_caching:
            return PagedKVCache(self.blocks, self.block_size, self.watermark_blocks)
        return PrefixKVCache(
            self.blocks,
            self.block_size,
            self.watermark_blocks,
            free_queue=partial(VllmFreeQueue, blank_first=self.unhashed_first),
            registration_lag=self.depth - 1,
        )

    def play(self, *, fast: bool = True, observer: Observer | None = None) -> Recording:
        """Run it with every check on."""
        limits = RequestLimits(self.max_model_len, self.reject, cuts_output=True)
        policy = VllmV1(VllmV1Settings.model_validate(self.flags), self.cache(), limits, self.rules)
        policy.observed = observer is not None
        options = RunOptions(self.horizon_s, fast=fast, check=True)
        return Simulation(list(self.requests), policy, self.step_time, options, observer=observer).run()

    def without_horizon(self) -> VllmCase:
        """Return the same case, played to its end."""
        return replace(self, horizon_s=float("inf"))


@st.composite
def traffic(draw: st.DrawFn, most: int = 14) -> tuple[Request, ...]:
    """Requests in order of arrival: families that share prompts and answers, next turns that may come too early."""
    number = draw(st.integers(1, most))
    shift_s = draw(SHIFTS_S)
    priority = draw(PRIORITIES)
    requests: list[Request] = []
    tick = 0
    for index in range(number):
        tick += draw(PAUSES)
        output_tokens = draw(OUTPUTS)
        prompt, stream = draw(identity(requests, index))
        requests.append(
            Request(
                str(index),
                tick * TICK_S + shift_s,
                sum(length for _, _, length in prompt) if prompt else draw(PROMPTS),
                output_tokens,
                priority=draw(priority),
                prompt=prompt,
                output_stream=stream,
            )
        )
    return tuple(requests)


Segments = tuple[tuple[int, int, int], ...]


@st.composite
def identity(draw: st.DrawFn, before: list[Request], index: int) -> tuple[Segments | None, int | None]:
    """Token identity of one request: none, a shared beginning, a copy, or a next turn of one before it."""
    kind = draw(KINDS)
    known = [request for request in before if request.prompt and request.output_stream is not None]
    if kind == "own":
        return None, None
    if kind == "shared" or not known:
        pieces = [(draw(st.integers(1, 2)), 0, draw(st.integers(1, 30)))]
        if draw(st.booleans()):
            pieces.append((100 + index, 0, draw(st.integers(1, 20))))
        return tuple(pieces), None if draw(st.integers(0, 2)) == 2 else 500 + index * draw(st.integers(0, 1))
    other = known[draw(st.integers(0, len(known) - 1))]
    assert other.prompt is not None
    if kind == "copy":
        return other.prompt, other.output_stream
    said = (other.output_tokens, max(1, other.output_tokens - 1), 40)[draw(st.integers(0, 2))]
    pieces = [*other.prompt, (other.output_stream or 0, 0, said)]
    if draw(st.booleans()):
        pieces.append((200 + index, 0, draw(st.integers(1, 9))))
    return tuple(pieces), 500 + index * draw(st.integers(0, 1))


@st.composite
def vllm_cases(
    draw: st.DrawFn,
    step_times: tuple[StepTime, ...] = (CONSTANT, CONSTANT, EXACT_LINEAR, ROUGH_LINEAR),
    *,
    most: int = 14,
) -> VllmCase:
    """A scenario whose pool is often just large enough for the largest request, and sometimes not even that."""
    requests = draw(traffic(most))
    seats = draw(SEATS)
    threshold = draw(THRESHOLDS)
    flags = {
        "max_num_seqs": seats,
        "max_num_batched_tokens": seats + draw(SPARE_TOKENS),
        "policy": draw(POLICIES),
        "enable_chunked_prefill": draw(USUALLY),
        "long_prefill_token_threshold": threshold,
        "long_prefill_token_threshold_adaptive": bool(threshold) and draw(st.booleans()),
        "scheduler_reserve_full_isl": draw(st.booleans()),
        "async_scheduling": draw(st.booleans()),
    }
    adaptive = flags["long_prefill_token_threshold_adaptive"]  # no version has it without sparing who is alone
    rules = VllmV1Rules(adaptive or draw(st.booleans()), draw(OVERFLOWS))
    block_size = draw(BLOCK_SIZES)
    max_model_len = draw(MODEL_LENGTHS)
    longest = max(request.prompt_tokens + request.output_tokens for request in requests)
    peak = min(longest, max_model_len or longest) - 1
    fits = draw(st.integers(0, 9)) != 0
    extra = draw(SPARE_BLOCKS if fits else st.integers(-3, -1))
    blocks = max(1, -(-max(peak, 1) // block_size) + extra)
    return VllmCase(
        requests,
        flags,
        rules,
        blocks=blocks,
        block_size=block_size,
        step_time=step_times[draw(st.integers(0, len(step_times) - 1))],
        watermark_blocks=(0, 0, 0, 1, blocks // 2)[draw(st.integers(0, 4))],
        prefix_caching=draw(OFTEN),
        unhashed_first=draw(OFTEN),
        max_model_len=max_model_len,
        reject=draw(USUALLY),
        horizon_s=draw(HORIZONS_S),
    )


@st.composite
def talking_cases(draw: st.DrawFn) -> VllmCase:
    """A conversation whose next turns and copies come while answers are being made, in a pool with some room."""
    requests: list[Request] = []
    tick = 0
    for index in range(draw(st.integers(2, 8))):
        tick += draw(st.integers(0, 6))
        opening = ((1, 0, draw(st.integers(1, 12))),)
        prompt: Segments = opening
        if requests:
            other = requests[draw(st.integers(0, index - 1))]
            said = draw(st.integers(1, other.output_tokens))
            prompt = (*(other.prompt or opening), (50, 0, said))
            if draw(st.booleans()):
                prompt = (*prompt, (200 + index, 0, draw(st.integers(1, 4))))
        length = sum(piece[2] for piece in prompt)
        output_tokens = draw(st.integers(4, 24))
        requests.append(
            Request(str(index), tick * TICK_S, length, output_tokens, prompt=prompt, output_stream=draw(ANSWERS))
        )
    base = draw(vllm_cases((CONSTANT, EXACT_LINEAR), most=1))
    block_size = draw(st.integers(1, 5))
    peak = max(request.prompt_tokens + request.output_tokens - 1 for request in requests)
    return replace(
        base,
        requests=tuple(requests),
        flags=base.flags | {"max_num_seqs": 8, "max_num_batched_tokens": draw(st.integers(8, 60))},
        block_size=block_size,
        blocks=-(-peak // block_size) + draw(st.integers(0, 60)),
        watermark_blocks=0,
        prefix_caching=True,
        max_model_len=None,
    )
