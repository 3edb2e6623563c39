"""The time to record a run."""

from __future__ import annotations

from simqueue.request import Job, Request
from simqueue.simulation.replica_log import ReplicaLog
from simqueue.simulation.request_log import RequestLog

from .common import SEATS, Measure, full_batch


def test_a_step_row(benchmark: Measure) -> None:
    """A row of the step table that does not merge with the row before it."""
    rows, plan = ReplicaLog(RequestLog(), counts_slots=False).rows, full_batch().one()
    benchmark(rows.add, plan, 0, 1.0, [2.0], 0, 100)
    assert set(rows.arrays()["decode_seqs"].tolist()) == {SEATS - 1}


def test_the_tokens_of_a_step(benchmark: Measure) -> None:
    """One token for each of 127 requests."""
    log, plan = ReplicaLog(RequestLog(), counts_slots=False), full_batch().one()
    now_s = 0.0

    def step() -> None:
        nonlocal now_s
        log.ran(plan, now_s, [now_s + 1.0])
        now_s += 1.0

    benchmark(step)
    assert set(log.tokens.gaps()["tokens"].tolist()) == {SEATS - 1}


def test_the_tokens_of_a_hundred_steps(benchmark: Measure) -> None:
    """A hundred tokens for each of 127 requests, in one event."""
    log, plan = ReplicaLog(RequestLog(), counts_slots=False), full_batch().one()
    now_s = 0.0

    def steps() -> None:
        nonlocal now_s
        log.ran(plan, now_s, [now_s + step for step in range(1, 101)])
        now_s += 100.0

    benchmark(steps)
    assert set(log.tokens.gaps()["tokens"].tolist()) == {SEATS - 1}


def test_a_request(benchmark: Measure) -> None:
    """A request arrives and finishes at once."""
    requests = RequestLog()
    log = ReplicaLog(requests, counts_slots=False)

    def live() -> None:
        job = Job(Request("r", 0.0, 16, 8), 0)
        requests.arrived(job, 0.0)
        log.finished(job, 1.0)

    benchmark(live)
    assert not requests.inside
