"""What goes to worker processes: it must come back equal, compiled or not."""

from __future__ import annotations

import copy
import pickle

import pytest

from simqueue.frontend import FrontEndTimes
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1Rules
from simqueue.simulation import RunOptions


@pytest.mark.parametrize(
    "record",
    [
        RunOptions(5.0, fast=False, check=True, ticks_per_s=3, max_queued_requests=4, front_end=FrontEndTimes(0.5)),
        RequestLimits(100, reject_oversized=False, cuts_output=True),
        VllmV1Rules(lone_request_uncapped=False, unchunked_overflow="skip", ties_by_id=False),
    ],
    ids=lambda record: type(record).__name__,
)
def test_frozen_records_can_be_sent_to_other_processes(record: object) -> None:
    """A record that was pickled or copied is equal to the first, with values that are no defaults."""
    assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301 - ours
    assert copy.deepcopy(record) == record
