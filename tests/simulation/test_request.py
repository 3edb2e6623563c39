"""Requests travel between processes, and with results."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from simqueue.experiment import run
from simqueue.request import Request

FULL = Request("a", 1.5, 7, 3, 2, 9.0, "chat", ((4, 0, 7),), 5, 1.0, 8.0, 1, "s", "c", "p")


@pytest.mark.parametrize("request_", [FULL, Request("b", 0.0, 1, 1)])
def test_a_request_comes_back_as_it_was(request_: Request) -> None:
    """Pickled, copied and copied deeply it is equal in every field."""
    for back in (pickle.loads(pickle.dumps(request_)), copy.copy(request_), copy.deepcopy(request_)):  # noqa: S301 - ours
        assert back == request_
        assert back.prompt == request_.prompt


def test_impatient_clients_run_in_worker_processes() -> None:
    """Requests that ask for more than lengths come back from other processes with their replication."""
    scenario: dict[str, Any] = {
        "name": "impatient",
        "step_time": {"kind": "constant", "seconds": 0.1},
        "kv_cache": {"blocks": 50},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 5},
            "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 40},
            "output_tokens": {"distribution": "uniform", "low": 1, "high": 9},
            "num_requests": 60,
            "timeout_s": 1.0,
        },
        "policies": {"chunked": {"scheduler": "chunked", "max_num_seqs": 2}},
        "replications": 4,
    }
    alone, shared = (run(scenario, workers=workers) for workers in (1, 2))
    assert alone.to_json() == shared.to_json()
    assert pickle.loads(pickle.dumps(shared)).to_json() == shared.to_json()  # noqa: S301 - ours
