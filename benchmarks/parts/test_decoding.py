"""What the decode clock costs."""

from __future__ import annotations

import pytest

from simqueue.request import Job
from simqueue.schedulers.decoding import DecodeClock

from .house import SEATS, Measure, endless

PROMPT_TOKENS = 16


def clock_of(seats: int) -> DecodeClock:
    """Return a clock with so many decodes that never end."""
    clock = DecodeClock(16, grows=True)
    for index in range(seats):
        job = endless(index, PROMPT_TOKENS)
        let_join(clock, job)
    return clock


def let_join(clock: DecodeClock, job: Job) -> None:
    """Let a job join that has made its first token."""
    job.known_tokens = job.request.prompt_tokens + 1
    job.computed_tokens = job.request.prompt_tokens
    job.place = job.index
    clock.join(job)


@pytest.mark.parametrize("seats", [16, 1024])
def test_a_step(benchmark: Measure, seats: int) -> None:
    """One token more for everybody, with the demand for blocks asked before."""
    clock = clock_of(seats)

    def step() -> None:
        clock.demand()
        clock.step()

    benchmark(step)
    assert clock.seqs == seats


@pytest.mark.parametrize("seats", [16, 1024])
def test_join_step_and_leave(benchmark: Measure, seats: int) -> None:
    """A request joins, makes one token with all others and is taken out."""
    clock, guest = clock_of(seats), endless(seats, PROMPT_TOKENS)

    def visit() -> None:
        let_join(clock, guest)
        clock.step()
        clock.leave(guest)

    benchmark(visit)
    assert clock.seqs == seats


def test_the_steps_that_free_blocks_carry(benchmark: Measure) -> None:
    """How many of the next hundred steps some free blocks are enough for."""
    clock = clock_of(SEATS)
    assert 0 < benchmark(clock.carried, 5 * SEATS, 100) < 100
