"""Random small scenarios for all policies: pools that thrash, ties on purpose, horizons, every key."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from simqueue.kvcache import ContiguousKVCache, KVCache, PagedKVCache
from simqueue.request import Request
from simqueue.schedulers import SCHEDULERS
from simqueue.schedulers.limits import RequestLimits
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.steptime import StepTime

from ..helpers.draws import (
    BLOCK_SIZES,
    HORIZONS_S,
    OUTPUTS,
    PAUSES,
    PROMPTS,
    SEATS,
    SHIFTS_S,
    SPARE_BLOCKS,
    SPARE_TOKENS,
)
from ..helpers.exact_times import CONSTANT, EXACT_LINEAR, ROUGH_LINEAR, TICK_S

DEADLINES = st.sampled_from([None] * 41 + [*range(41)])


@dataclass(frozen=True)
class Case:
    """A scenario with one policy."""

    requests: tuple[Request, ...]
    scheduler: str
    keys: dict[str, Any]
    blocks: int
    block_size: int
    step_time: StepTime
    watermark_blocks: int = 0
    contiguous: bool = False
    reserve_tokens: int | None = None
    reject: bool = True
    horizon_s: float = float("inf")
    ticks_per_s: int | None = field(default=None)

    def simulation(self, *, fast: bool) -> Simulation:
        """Build it, with every check on."""
        kv: KVCache = PagedKVCache(self.blocks, self.block_size, self.watermark_blocks)
        if self.contiguous:
            kv = ContiguousKVCache(self.blocks, self.block_size, self.watermark_blocks, self.reserve_tokens)
        policy_class: Any = SCHEDULERS[self.scheduler]
        settings = policy_class.Settings.model_validate(self.keys)
        policy = policy_class(settings, kv, RequestLimits(self.reserve_tokens, self.reject))
        options = RunOptions(self.horizon_s, fast=fast, check=True, ticks_per_s=self.ticks_per_s)
        return Simulation(self.requests, policy, self.step_time, options)

    def play(self, *, fast: bool = True) -> Recording:
        """Run it."""
        return self.simulation(fast=fast).run()

    def forever(self) -> Case:
        """Return the same case without a horizon."""
        return replace(self, horizon_s=float("inf"))


@st.composite
def traffic(draw: st.DrawFn, most: int = 14) -> tuple[Request, ...]:
    """Requests in order of arrival, many at one instant, with few distinct lengths so that they tie."""
    number = draw(st.integers(1, most))
    shift_s = draw(SHIFTS_S)
    requests, tick = [], 0
    for index in range(number):
        tick += draw(PAUSES)
        deadline = draw(DEADLINES)
        requests.append(
            Request(
                str(index),
                tick * TICK_S + shift_s,
                draw(PROMPTS),
                draw(OUTPUTS),
                priority=draw(st.integers(0, 2)),
                deadline_s=None if deadline is None else tick * TICK_S + shift_s + deadline * TICK_S,
            )
        )
    return tuple(requests)


orders = st.sampled_from(["fcfs", "fcfs", "shortest_prompt", "shortest_output", "priority", "deadline"])
CHUNKS = st.sampled_from([None] * 9 + [*range(1, 10)])
PREFILLS = st.sampled_from(["mixed", "separate"])
BATCHES = st.sampled_from(["dynamic", "fixed"])
WAVE_TIMEOUTS_S = st.sampled_from([0.0, TICK_S, 4 * TICK_S, 0.0123, 1.0])
RELEASES = st.sampled_from(["wave_end", "own_end"])
EMISSIONS = st.sampled_from(["as_made", "wave_end"])


@st.composite
def iteration_keys(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Names and keys of the policies that decide at every step."""
    seats = draw(SEATS)
    keys: dict[str, Any] = {
        "max_num_seqs": seats,
        "max_num_batched_tokens": seats + draw(SPARE_TOKENS),
        "order": draw(orders),
    }
    scheduler = ("chunked", "continuous")[draw(st.integers(0, 1))]
    if scheduler == "chunked":
        keys["chunk_tokens"] = draw(CHUNKS)
    else:
        keys["prefill"] = draw(PREFILLS)
    return scheduler, keys


@st.composite
def llamacpp_keys(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Slots of llama.cpp's server, with batches that cut prompts."""
    seats = draw(st.integers(1, 5))
    return "llamacpp", {"n_parallel": seats, "n_batch": draw(st.integers(seats, 40))}


@st.composite
def static_keys(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """The static policy with every combination of its keys."""
    keys: dict[str, Any] = {"max_num_seqs": draw(st.integers(1, 5)), "order": draw(orders)}
    keys["batch"] = draw(BATCHES)
    if keys["batch"] == "fixed":
        keys["wave_timeout_s"] = draw(WAVE_TIMEOUTS_S)
    keys["release"] = draw(RELEASES)
    if keys["release"] == "wave_end":
        keys["emit"] = draw(EMISSIONS)
    return "static", keys


@st.composite
def cases(
    draw: st.DrawFn,
    policies: st.SearchStrategy[tuple[str, dict[str, Any]]],
    step_times: tuple[StepTime, ...] = (CONSTANT, CONSTANT, EXACT_LINEAR, ROUGH_LINEAR),
) -> Case:
    """A scenario whose pool is often just large enough for the largest request, and sometimes not even that."""
    requests = draw(traffic())
    scheduler, keys = draw(policies)
    block_size = draw(BLOCK_SIZES)
    contiguous = draw(st.integers(0, 7)) == 0 and scheduler != "llamacpp"
    fits = draw(st.integers(0, 7)) != 0
    reserve_tokens = 72 if contiguous and draw(st.booleans()) else None
    peaks = [reserve_tokens or request.prompt_tokens + request.output_tokens - 1 for request in requests]
    largest = -(-max(peaks) // block_size)
    blocks = max(1, largest + draw(SPARE_BLOCKS if fits else st.integers(-3, -1)))
    return Case(
        requests,
        scheduler,
        keys,
        blocks=blocks,
        block_size=block_size,
        step_time=step_times[draw(st.integers(0, len(step_times) - 1))],
        watermark_blocks=(0, 0, 0, 1, blocks // 2)[draw(st.integers(0, 4))],
        contiguous=contiguous,
        reserve_tokens=reserve_tokens,
        reject=draw(st.integers(0, 3)) != 0,
        horizon_s=draw(HORIZONS_S),
    )
