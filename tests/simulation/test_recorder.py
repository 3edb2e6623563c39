"""What the logs make of plans, given to them one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from simqueue.request import Job, Request, Status
from simqueue.schedulers.base import Plan
from simqueue.simulation.replica_log import ReplicaLog
from simqueue.simulation.request_log import RequestLog
from simqueue.simulation.requestrows import ENDED_AT_ONCE, RequestRows
from simqueue.steptime.base import Batch

from ..helpers.playing import rows, seen


def tables(requests: RequestLog, log: ReplicaLog) -> Any:
    """Return the tables of a run that is over."""
    gaps = log.tokens.gaps()
    return SimpleNamespace(requests=requests.rows.arrays(), steps=log.rows.arrays(), gaps=gaps)


def decodes(ticking: int, left_out: tuple[Job, ...] = ()) -> Plan:
    """Return a plan in which requests decode and others are left out."""
    batch = Batch(ticking, ticking, 10 * ticking, sampled_rows=ticking)
    return Plan(batch, 1, ticking, running=2, waiting=0, work=batch, blocks_used=2, left_out=left_out)


def test_a_request_that_is_left_out_of_a_step_goes_on_with_the_next() -> None:
    """Both get their first token at 1 s; at 2 s a gets one alone; at 3 s both do: b has a gap of 2 s."""
    requests, a, b = RequestLog(), Job(Request("a", 0.0, 4, 3), 0), Job(Request("b", 0.0, 4, 2), 1)
    log = ReplicaLog(requests, counts_slots=False)
    for job in (a, b):
        requests.arrived(job, 0.0)
    work = Batch(prefill=((0, 4), (0, 4)), sampled_rows=2)
    first = Plan(work, 1, 0, 2, 0, work, 2, admitted=[(a, 0), (b, 0)], first=[a, b])
    log.planned(first, 0.0)
    log.ran(first, 0.0, [1.0])
    log.ran(decodes(1, (b,)), 1.0, [2.0])
    log.ran(decodes(2), 2.0, [3.0])
    for job in (a, b):
        log.finished(job, 3.0)
    recording = tables(requests, log)
    assert seen(recording, "tokens_emitted", "first_token_s", "last_token_s", "max_itl_s") == {
        "a": (3, 1.0, 3.0, 1.0),
        "b": (2, 1.0, 3.0, 2.0),
    }
    gaps = zip(recording.gaps["gap_s"].tolist(), recording.gaps["tokens"].tolist(), strict=True)
    assert sorted(gap_s for gap_s, tokens in gaps for _ in range(tokens)) == [1.0, 1.0, 2.0]
    assert rows(recording, "start_s", "decode_seqs") == [(0.0, 0), (1.0, 1), (2.0, 2)]


def test_rows_of_requests_are_read_once() -> None:
    """However often what has ended is read, each request has one row, in the order in which they end."""
    rows_of = RequestRows()
    for index, status in enumerate((Status.FINISHED, Status.TIMED_OUT, Status.UNFINISHED)):
        job = Job(Request(str(index), 0.0, 4, 2), index)
        rows_of.ended.append((job, status, 5.0, None, 0))
        rows_of.flush()
    rows_of.flush()
    table = rows_of.arrays()
    assert table["request_id"].tolist() == ["0", "1", "2"]
    assert table["status"].tolist() == ["finished", "timed_out", "unfinished"]
    np.testing.assert_array_equal(table["finish_s"], [5.0, 5.0, np.nan])


def test_requests_that_end_by_the_thousand_keep_one_row_each() -> None:
    """3000 rejected requests: as many rows, and none of them is kept until the end of the run."""
    requests = RequestLog()
    for index in range(3000):
        requests.ended(Job(Request(str(index), float(index), 1, 1), index), float(index), Status.REJECTED, "full")
    assert len(requests.rows.ended) == 3000 - 2 * ENDED_AT_ONCE
    assert requests.rows.arrays()["request_id"].tolist() == [str(index) for index in range(3000)]
    assert (requests.ended_count, requests.last_end_s) == (3000, 2999.0)
