"""The time of the decode counters."""

from __future__ import annotations

import pytest

from simqueue.request import Job
from simqueue.schedulers.decoding import DecodeCounters

from .common import SEATS, Measure, endless

PROMPT_TOKENS = 16


def counters_of(seats: int) -> DecodeCounters:
    """Return counters with this many requests that never end."""
    counters = DecodeCounters(16, grows=True)
    for index in range(seats):
        job = endless(index, PROMPT_TOKENS)
        let_join(counters, job)
    return counters


def let_join(counters: DecodeCounters, job: Job) -> None:
    """Start decoding of a job that has its first token."""
    job.known_tokens = job.request.prompt_tokens + 1
    job.computed_tokens = job.request.prompt_tokens
    job.rank = job.index
    counters.start(job)


@pytest.mark.parametrize("seats", [16, 1024])
def test_a_step(benchmark: Measure, seats: int) -> None:
    """Compute the demand for blocks, and add one token to each request."""
    counters = counters_of(seats)

    def step() -> None:
        counters.demand()
        counters.step()

    benchmark(step)
    assert counters.seqs == seats


@pytest.mark.parametrize("seats", [16, 1024])
def test_join_step_and_leave(benchmark: Measure, seats: int) -> None:
    """A request joins, all requests get a token, and it leaves again."""
    counters, guest = counters_of(seats), endless(seats, PROMPT_TOKENS)

    def visit() -> None:
        let_join(counters, guest)
        counters.step()
        counters.stop(guest)

    benchmark(visit)
    assert counters.seqs == seats


def test_the_steps_within_the_free_blocks(benchmark: Measure) -> None:
    """Compute for how many of the next hundred steps the free blocks suffice."""
    counters = counters_of(SEATS)
    assert 0 < benchmark(counters.steps_within, 5 * SEATS, 100) < 100
