"""Recordings written by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from simqueue.simulation.recording import KeptTable, Recording

NAN = float("nan")
REQUEST: dict[str, Any] = {
    "request_id": "r",
    "request_class": None,
    "arrival_s": 0.0,
    "prompt_tokens": 10,
    "output_tokens": 2,
    "status": "finished",
    "reject_reason": None,
    "replica": 0,
    "first_scheduled_s": NAN,
    "first_token_s": NAN,
    "last_token_s": NAN,
    "finish_s": NAN,
    "max_itl_s": NAN,
    "preemptions": 0,
    "cached_tokens": 0,
    "recomputed_tokens": 0,
    "tokens_emitted": 0,
}
STEP: dict[str, Any] = {
    "start_s": 0.0,
    "duration_s": 0.01,
    "repeat": 1,
    "last_step_s": 0.01,
    "decode_seqs": 0,
    "context_tokens": 0,
    "prefill_tokens": 0,
    "prefill_seqs": 0,
    "blocks_used": 0,
    "running": 0,
    "waiting": 0,
    "preempted": 0,
}
RecordingMaker = Callable[..., Recording]


def _columns(rows: Sequence[dict[str, Any]], defaults: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    found = {}
    for name, default in defaults.items():
        kind = {float: np.float64, int: np.int64}.get(type(default), object)
        values = np.empty(len(rows), dtype=kind)
        values[:] = [row.get(name, default) for row in rows]
        found[name] = values
    return found


def _with_its_tokens(row: dict[str, Any]) -> dict[str, Any]:
    """A finished request got all its tokens, the last as it left, unless the row says something else."""
    finished = row["status"] == "finished" and not row["tokens_emitted"]
    return row | ({"tokens_emitted": row["output_tokens"], "last_token_s": row["finish_s"]} if finished else {})


@pytest.fixture
def record() -> RecordingMaker:
    """Make a recording from rows of requests and steps, each a dict of what differs from an empty one."""

    def make(
        requests: Sequence[dict[str, Any]] = (),
        steps: Sequence[dict[str, Any]] = (),
        itl: Sequence[tuple[float, int]] = (),
        **more: Any,
    ) -> Recording:
        requests = [_with_its_tokens({**REQUEST, **row}) for row in requests]
        rest = {
            "blocks_total": 100,
            "blocks_peak": 0,
            "max_concurrent": 0,
            "slot_steps": None,
            "idle_slot_steps": None,
            "end_s": 0.0,
        }
        return Recording(
            requests=_columns(requests, REQUEST),
            steps=KeptTable(_columns(steps, STEP)),
            gaps=KeptTable(
                gap_s=np.array([value for value, _ in itl], dtype=np.float64),
                tokens=np.array([count for _, count in itl], dtype=np.int64),
            ),
            **(rest | more),
        )

    return make


@pytest.fixture
def preempted_pair(record: RecordingMaker) -> Recording:
    """Two requests of 40 tokens on a pool of 5 blocks, steps of 10 ms: b is preempted once and waits 240 ms."""
    common = {"output_tokens": 40, "first_scheduled_s": 0.0, "first_token_s": 0.01, "tokens_emitted": 40}
    return record(
        [
            common | {"request_id": "a", "prompt_tokens": 16, "finish_s": 0.40, "max_itl_s": 0.01},
            common | {"request_id": "b", "prompt_tokens": 32, "finish_s": 0.63, "max_itl_s": 0.24, "preemptions": 1},
        ],
        [{"duration_s": 0.63}],
        itl=[(0.01, 39), (0.01, 38), (0.24, 1)],
        blocks_total=5,
        blocks_peak=5,
        max_concurrent=2,
        end_s=0.63,
    )
