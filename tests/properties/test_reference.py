"""The policies against an independent reference that walks every request in every step."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import example, given

from simqueue.request import Request
from simqueue.simulation import Recording

from ..helpers.exact_times import CONSTANT, EXACT_LINEAR, TICK_S, UNIT_S
from ..helpers.profiles import examples
from .cases import Case, cases, iteration_keys
from .walk import Asked, Guest, House, Walk, pooled_gaps, rows

STEP_COLUMNS = (
    "start_s",
    "duration_s",
    "repeat",
    "last_step_s",
    "decode_seqs",
    "context_tokens",
    "prefill_tokens",
    "prefill_seqs",
    "blocks_used",
    "running",
    "waiting",
    "preempted",
)
THRASHING = Case(
    tuple(Request(str(i), 0.0, 64, 64) for i in range(10)),
    "chunked",
    {"max_num_seqs": 256, "max_num_batched_tokens": 2048},
    blocks=12,
    block_size=16,
    step_time=CONSTANT,
)


def constant_seconds(*_: int) -> float:
    """One tick, whatever the batch."""
    return TICK_S


def linear_seconds(decode_seqs: int, context_tokens: int, prefill_tokens: int) -> float:
    """The linear model of `EXACT_LINEAR`, written down in whole units."""
    decode_units = 11 + 3 * decode_seqs + context_tokens if decode_seqs else 0
    return (37 + 5 * prefill_tokens + decode_units) * UNIT_S


def walked(case: Case) -> Walk:
    """Play the case in the reference."""
    keys = case.keys
    house = House(
        kind="chunked" if case.scheduler == "chunked" else keys["prefill"],
        seats=keys["max_num_seqs"],
        budget=keys["max_num_batched_tokens"],
        chunk=keys.get("chunk_tokens"),
        blocks=case.blocks,
        block_size=case.block_size,
        step_seconds=constant_seconds if case.step_time == CONSTANT else linear_seconds,
        order=keys.get("order", "fcfs"),
        watermark_blocks=case.watermark_blocks,
        contiguous=case.contiguous,
        reserve_tokens=case.reserve_tokens,
        reject=case.reject,
        horizon_s=case.horizon_s,
    )
    asked = [Asked(r.arrival_s, r.prompt_tokens, r.output_tokens, r.priority, r.deadline_s) for r in case.requests]
    return Walk(asked, house).run()


def outcome(guest: Guest) -> tuple[object, ...]:
    """What the reference says of one request."""
    times = guest.token_times_s
    return (
        guest.first_scheduled_s,
        times[0] if times else None,
        times[-1] if times else None,
        guest.finish_s,
        max(guest.gaps_s, default=None),
        len(times),
        guest.preemptions,
        guest.recomputed,
    )


def recorded(recording: Recording) -> list[tuple[object, ...]]:
    """What the package says of all requests, None for 'never'."""
    times = ("first_scheduled_s", "first_token_s", "last_token_s", "finish_s", "max_itl_s")
    columns = [[None if np.isnan(t) else t for t in recording.requests[name].tolist()] for name in times]
    counts = ("tokens_emitted", "preemptions", "recomputed_tokens")
    columns += [recording.requests[name].tolist() for name in counts]
    return list(zip(*columns, strict=True))


def step_rows(recording: Recording) -> list[tuple[float, ...]]:
    """Return the package's steps table."""
    return list(zip(*(recording.steps[name].tolist() for name in STEP_COLUMNS), strict=True))


def agree(case: Case) -> None:
    """Compare everything that the package and the reference both know, exactly."""
    reference, recording = walked(case), case.play()
    assert recorded(recording) == [outcome(guest) for guest in reference.guests]
    assert step_rows(recording) == rows(reference.steps)
    gaps: Counter[float] = Counter()
    for gap, count in zip(recording.gaps["gap_s"].tolist(), recording.gaps["tokens"].tolist(), strict=True):
        gaps[gap] += count
    assert gaps == pooled_gaps(reference.guests)


exact_cases = cases(iteration_keys(), (CONSTANT, EXACT_LINEAR))


@examples(250, thorough=1500)
@example(THRASHING)
@given(exact_cases)
def test_schedule_is_the_one_that_a_plain_walk_finds(case: Case) -> None:
    """Times, preemptions, steps and gaps are exactly those of a walk over requests, blocks and tokens."""
    agree(case)
