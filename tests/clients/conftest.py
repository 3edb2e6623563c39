"""Fixtures for tests of clients: toy scenarios, and a run that is checked in two ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from simqueue.results.result import Result

from ..helpers.both_ways import play_both_ways

ONE_SEAT = {"scheduler": "chunked", "max_num_seqs": 1, "max_num_batched_tokens": 2048}
MANY_SEATS = {**ONE_SEAT, "max_num_seqs": 256}

Play = Callable[..., Result]


@pytest.fixture
def play() -> Play:
    """Return a run of a workload on toy steps, with invariants verified, folded and step by step: both must agree."""

    def played(
        workload: Mapping[str, Any],
        policy: Mapping[str, Any] = MANY_SEATS,
        *,
        step_time: Mapping[str, Any] | float = 2.0**-7,
        **more: Any,
    ) -> Result:
        steps = {"kind": "constant", "seconds": step_time} if isinstance(step_time, float) else dict(step_time)
        scenario = {
            "step_time": steps,
            "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 100_000},
            "policies": {"toy": dict(policy)},
            **({"workload": dict(workload)} if workload else {}),
            **more,
        }
        return play_both_ways(scenario)

    return played


def constant(value: int) -> dict[str, Any]:
    """Return a distribution of one length."""
    return {"distribution": "constant", "value": value}


def ends(result: Result) -> list[tuple[str, str, float]]:
    """Return id, status and end of every request."""
    rows = result.requests
    return list(zip(rows["request_id"], rows["status"], rows["finish_s"], strict=True))
