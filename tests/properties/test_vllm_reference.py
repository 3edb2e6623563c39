"""vLLM's V1 scheduler against an independent reference of its rules, step by step and to the last block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given

from simqueue.request import Request
from simqueue.schedulers.vllm_v1 import VllmV1Rules
from simqueue.simulation.options import SeenStep

from ..helpers.exact_times import CONSTANT, EXACT_LINEAR, TICK_UNITS, UNIT_S
from ..helpers.profiles import examples
from .vllm_cases import VllmCase, talking_cases, vllm_cases
from .vllm_walk import UNCAPPED, Asked, Engine, Step, Token, Walk

exact_cases = vllm_cases((CONSTANT, EXACT_LINEAR))


def constant_units(_decodes: int, _context: int, _prompt: int) -> int:
    """Return what `CONSTANT` says, in whole units."""
    return TICK_UNITS


def linear_units(decodes: int, context: int, prompt: int) -> int:
    """Return what `EXACT_LINEAR` says, in whole units."""
    return 37 + 5 * prompt + ((11 + 3 * decodes + context) if decodes else 0)


def asked_of(request: Request) -> Asked:
    """Write out the tokens of a request."""
    own = "own " + request.request_id
    pieces = request.prompt or ((own, 0, request.prompt_tokens),)
    prompt: tuple[Token, ...] = tuple((stream, start + i) for stream, start, n in pieces for i in range(n))
    stream: Any = request.output_stream if request.output_stream is not None else "answer of " + request.request_id
    answer = tuple((stream, j) for j in range(request.output_tokens))
    return Asked(request.request_id, round(request.arrival_s / UNIT_S), prompt, answer, request.priority)


def engine_of(case: VllmCase) -> Engine:
    """Say a case in the reference's words."""
    flags = case.flags
    return Engine(
        seats=flags["max_num_seqs"],
        budget=flags["max_num_batched_tokens"],
        blocks=case.blocks,
        block_size=case.block_size,
        cost=constant_units if case.step_time == CONSTANT else linear_units,
        priority=flags["policy"] == "priority",
        chunked=flags["enable_chunked_prefill"],
        threshold=flags["long_prefill_token_threshold"],
        adaptive=flags["long_prefill_token_threshold_adaptive"],
        lone_uncapped=case.rules.lone_request_uncapped,
        overflow_stops=case.rules.unchunked_overflow == "stop",
        reserve=flags["scheduler_reserve_full_isl"],
        watermark_blocks=case.watermark_blocks,
        prefix_caching=case.prefix_caching,
        unhashed_first=case.unhashed_first,
        depth=case.depth,
        max_model_len=case.max_model_len or UNCAPPED,
    )


def ours(seen: SeenStep, total: int) -> dict[str, Any]:
    """Return a step of the package as plain values, times in units."""
    plan = seen.plan
    return {
        "times": tuple(round(time_s / UNIT_S) for time_s in (seen.planned_s, seen.start_s, seen.end_s)),
        "shares": [(job.request.request_id, new) for job, new in plan.members],
        "preempted": [job.request.request_id for job in plan.preempted],
        "admitted": [(job.request.request_id, hit) for job, hit in plan.admitted],
        "finished": [job.request.request_id for job in plan.finishing],
        "free": (total - plan.blocks_used, seen.free_blocks),
        "inside": (plan.running, plan.waiting),
    }


def theirs(step: Step) -> dict[str, Any]:
    """Return a step of the reference as plain values."""
    return {
        "times": (step.planned_at, step.start, step.end),
        "shares": [(guest.asked.name, new) for guest, new in step.shares.items()],
        "preempted": [guest.asked.name for guest in step.preempted],
        "admitted": [(guest.asked.name, hit) for guest, hit in step.admitted],
        "finished": [guest.asked.name for guest in step.finished],
        "free": (step.free, step.free_after),
        "inside": (step.running, step.waiting),
    }


def agrees(case: VllmCase) -> None:
    """Play both and compare every step; then what became of each request."""
    case = replace(case, horizon_s=float("inf"), reject=True)
    seen: list[SeenStep] = []
    recording = case.play(fast=False, observer=seen.append)
    stuck = "unfinished" in set(recording.requests["status"])
    walk = Walk([asked_of(request) for request in case.requests], engine_of(case)).run(len(seen) + 400)
    mine, real = [ours(step, case.blocks) for step in seen], [theirs(step) for step in walk.steps]
    if stuck:  # a livelock: the package rests once a state comes back, the reference goes round in it
        assert any(len(guest.tokens) < guest.length for guest in walk.guests)
        rest = next((i for i, pair in enumerate(zip(mine, real, strict=False)) if pair[0] != pair[1]), len(mine))
        assert rest == len(mine) or mine[rest]["preempted"] or mine[rest - 1]["preempted"]
        return
    for number, (one, other) in enumerate(zip(mine, real, strict=False)):
        assert one == other, f"step {number}"
    assert len(mine) == len(real)
    rows = dict(zip(recording.requests["request_id"], range(len(case.requests)), strict=True))
    assert {name for name, row in rows.items() if recording.requests["status"][row] == "rejected"} == set(walk.rejected)
    for guest in walk.guests:
        row = rows[guest.asked.name]
        assert recording.requests["preemptions"][row] == guest.preemptions
        assert recording.requests["recomputed_tokens"][row] == guest.recomputed
        assert recording.requests["cached_tokens"][row] == guest.hit
        assert recording.requests["tokens_emitted"][row] == len(guest.token_times)
        assert round(recording.requests["first_token_s"][row] / UNIT_S) == guest.token_times[0]
        assert round(recording.requests["finish_s"][row] / UNIT_S) == guest.token_times[-1]
    if recording.prefix is not None:
        assert recording.prefix.queried_tokens == sum(len(guest.asked.prompt) for guest in walk.guests)
        assert recording.prefix.hit_tokens == sum(guest.hit or 0 for guest in walk.guests)
        assert recording.prefix.self_hit_tokens == sum(guest.self_hits for guest in walk.guests)


@examples(200, thorough=1500)
@given(exact_cases)
def test_every_step_is_the_references(case: VllmCase) -> None:
    """Shares and their order, preemptions, hits, free blocks, queue lengths and times are those of the reference."""
    agrees(case)


@examples(200, thorough=1500)
@given(talking_cases())
def test_every_step_is_the_references_while_answers_are_made(case: VllmCase) -> None:
    """Next turns and copies that come too early find just the blocks that are registered by then, in both modes."""
    agrees(case)


def test_two_that_take_each_others_blocks_get_on_by_what_stays_cached() -> None:
    """Tied priorities preempt each other again and again, but each time more is found again: that is no livelock."""
    prompts = ((0, 0, 17), (100, 0, 21)), ((1, 0, 14), (50, 0, 19)), ((0, 0, 21), (102, 0, 7))
    requests = tuple(
        Request(name, 0.0, sum(length for _, _, length in prompt), 1, prompt=prompt)
        for name, prompt in zip("abc", prompts, strict=True)
    )
    flags = {
        "max_num_seqs": 2,
        "max_num_batched_tokens": 4,
        "policy": "priority",
        "enable_chunked_prefill": True,
        "long_prefill_token_threshold": 3,
        "long_prefill_token_threshold_adaptive": False,
        "scheduler_reserve_full_isl": False,
        "async_scheduling": False,
    }
    case = VllmCase(requests, flags, VllmV1Rules(), 43, 1, CONSTANT, prefix_caching=True)
    assert set(case.play(fast=True).requests["status"]) == {"finished"}
    agrees(case)
