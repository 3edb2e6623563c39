"""Random small scenarios for SGLang: tight pools, ties, shared tokens, every flag, every version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from simqueue.engines.sglang import rules_of, tree_of
from simqueue.engines.sglang_facts import sglang_versions
from simqueue.kvcache.radix import RadixKVCache
from simqueue.kvcache.radixtree import RadixRules
from simqueue.request import Request
from simqueue.schedulers.keys import SglangSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.sglang import Sglang
from simqueue.simulation import Recording, RunOptions, Simulation
from simqueue.steptime import StepTime
from simqueue.traffic import Traffic

from ..helpers.draws import HORIZONS_S, OFTEN, OUTPUTS, PAUSES, PROMPTS, SEATS, SHIFTS_S, SPARE_TOKENS, USUALLY
from ..helpers.exact_times import CONSTANT, EXACT_LINEAR, ROUGH_LINEAR, TICK_S

VERSIONS = st.sampled_from(list(sglang_versions()))
KINDS = st.sampled_from(["own", "shared", "shared", "copy", "turn"])
PAGES = st.sampled_from([1, 1, 2, 4, 16])
CHUNKS = st.sampled_from([-1, 4, 8, 16, 64])
SPARE_PAGES = st.sampled_from([0, 0, 1, 2, 3, 8, 40])
LIMITS = st.sampled_from([0, 0, 1, 3, 20])
"""Tokens by which the limit of an answer is above its length."""
PATIENCE = st.sampled_from([None] * 6 + [1, 3, 9, 30])
CONSERVATIVE = st.sampled_from([1.0, 0.05, 0.3, 2.0])


@dataclass(frozen=True)
class SglangCase:
    """A scenario with one engine."""

    requests: tuple[Request, ...]
    version: str
    flags: dict[str, Any]
    pages: int
    page: int
    caches: bool
    eviction: str
    step_time: StepTime
    horizon_s: float = float("inf")

    def policy(self) -> Sglang:
        """Make the policy with its pool."""
        facts = sglang_versions()[self.version]
        tree = RadixRules(self.eviction, *tree_of(facts))
        pool = RadixKVCache(self.pages, self.page, tree, caches=self.caches)
        return Sglang(SglangSettings(**self.flags), pool, RequestLimits(), rules_of(facts))

    def play(self, *, fast: bool = True, observed: bool = False) -> Recording:
        """Play it with every check on."""
        policy = self.policy()
        policy.observed = observed
        options = RunOptions(self.horizon_s, fast=fast, check=True)
        return Simulation(Traffic(list(self.requests)), policy, self.step_time, options).run()


@st.composite
def sglang_cases(draw: st.DrawFn, most: int = 12, *, patient: bool = False) -> SglangCase:
    """Return a scenario with up to `most` requests; `patient`: without clients that give up."""
    version = draw(VERSIONS)
    facts = sglang_versions()[version]
    requests = _requests(draw, most, patient=patient)
    page = draw(PAGES) if facts.pages else 1
    largest = max(request.prompt_tokens + request.output_tokens for request in requests)
    flags = _flags(draw, version)
    if 0 < flags["chunked_prefill_size"] < page:
        flags["chunked_prefill_size"] = page  # a chunk has at least a page
    return SglangCase(
        tuple(requests),
        version,
        flags,
        -(-(largest + 8) // page) + 2 + draw(SPARE_PAGES),
        page,
        "disable_radix_cache" in facts.unmodelled or draw(USUALLY),
        draw(st.sampled_from(facts.evictions)),
        draw(st.sampled_from([CONSTANT, EXACT_LINEAR, ROUGH_LINEAR])),
        draw(HORIZONS_S),
    )


def _flags(draw: st.DrawFn, version: str) -> dict[str, Any]:
    facts = sglang_versions()[version]
    seats = draw(SEATS)
    flags: dict[str, Any] = {
        "schedule_policy": draw(st.sampled_from(facts.policies)),
        "max_running_requests": seats,
        "max_prefill_tokens": seats + 4 + draw(SPARE_TOKENS),
        "chunked_prefill_size": draw(CHUNKS),
        "enable_mixed_chunk": "enable_mixed_chunk" not in facts.unmodelled and not draw(OFTEN),
        "schedule_conservativeness": draw(CONSERVATIVE),
        "disable_overlap_schedule": draw(st.booleans()),
    }
    if flags["enable_mixed_chunk"] and flags["chunked_prefill_size"] > 0:
        flags["chunked_prefill_size"] += seats
    if facts.newest_flags:
        flags["prefill_decode_interval"] = draw(st.sampled_from([0, 0, 0, 2]))
        flags["prefill_max_requests"] = draw(st.sampled_from([None, None, 1, 2]))
    if facts.priorities:
        flags["enable_priority_scheduling"] = flags["schedule_policy"] in ("fcfs", "lof") and draw(st.booleans())
        flags["priority_scheduling_preemption_threshold"] = draw(st.sampled_from([0, 1]))
    return flags


def _requests(draw: st.DrawFn, most: int, *, patient: bool) -> list[Request]:
    requests: list[Request] = []
    ticks = 0
    for number in range(draw(st.integers(1, most))):
        ticks += draw(PAUSES)
        arrival_s = ticks * TICK_S + draw(SHIFTS_S)
        prompt_tokens, output_tokens = draw(PROMPTS), draw(OUTPUTS)
        prompt = _prompt(draw, requests, number, prompt_tokens)
        patience = None if patient else draw(PATIENCE)
        requests.append(
            Request(
                str(number),
                arrival_s,
                sum(length for _, _, length in prompt),
                output_tokens,
                draw(st.integers(0, 2)),
                prompt=prompt,
                output_stream=1000 + number,
                gives_up_s=None if patience is None else arrival_s + patience * TICK_S,
                max_output_tokens=output_tokens + draw(LIMITS),
                ignore_eos=draw(st.booleans()),
                routing_key=draw(st.sampled_from([None, "a", "b"])),
            )
        )
    return sorted(requests, key=lambda request: request.arrival_s)


def _prompt(draw: st.DrawFn, before: list[Request], number: int, tokens: int) -> tuple[tuple[int, int, int], ...]:
    kind = draw(KINDS)
    if kind == "shared":
        shared = draw(st.integers(0, tokens))
        pieces = ((1, 0, shared), (100 + number, 0, tokens - shared))
        return tuple(piece for piece in pieces if piece[2])
    if kind in ("copy", "turn") and before:
        other = draw(st.sampled_from(before))
        prompt = other.prompt or ()
        if kind == "copy" or other.prompt_tokens > 40:
            return prompt
        return (*prompt, (other.output_stream or 0, 0, other.output_tokens), (100 + number, 0, tokens))
    return ((100 + number, 0, tokens),)
