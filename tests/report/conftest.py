"""Results with given latencies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simqueue.results.policyrun import PolicyRun
from simqueue.results.result import Result
from simqueue.results.window import Window
from simqueue.simulation.recording import KeptTable, Recording

STEPS = (
    "start_s duration_s repeat last_step_s decode_seqs context_tokens prefill_tokens prefill_seqs blocks_used "
    "running waiting preempted"
)
ResultMaker = Callable[..., Result]


def _recording(latencies_ms: list[float], status: str) -> Recording:
    """Every request arrives at 0, has its first token after its latency, and one more at twice that."""
    n = len(latencies_ms)
    first_s = np.array(latencies_ms, dtype=np.float64) / 1000
    zeros = np.zeros(n, dtype=np.int64)
    requests: dict[str, Any] = {
        "request_id": np.array([f"r{i}" for i in range(n)], dtype=object),
        "request_class": np.full(n, None, dtype=object),
        "arrival_s": np.zeros(n),
        "prompt_tokens": zeros + 1,
        "output_tokens": zeros + 2,
        "status": np.full(n, status, dtype=object),
        "reject_reason": np.full(n, None, dtype=object),
        "replica": zeros,
        "first_scheduled_s": np.zeros(n),
        "first_token_s": first_s,
        "last_token_s": 2 * first_s,
        "finish_s": 2 * first_s,
        "max_itl_s": first_s,
        "tokens_emitted": zeros + 2,
    }
    requests |= dict.fromkeys(("preemptions", "cached_tokens", "recomputed_tokens"), zeros)
    steps = KeptTable(
        {name: np.zeros(0, dtype=np.float64 if name.endswith("_s") else np.int64) for name in STEPS.split()}
    )
    end_s = float(2 * first_s.max(initial=0.0))
    gaps = KeptTable(gap_s=first_s, tokens=np.ones(n, dtype=np.int64))
    return Recording(requests, steps, gaps, 100, 10, n, None, None, end_s)


@pytest.fixture
def result_of() -> ResultMaker:
    """Make a result from a list of TTFTs in ms a policy; E2EL is twice, TPOT once the TTFT."""

    def make(
        policies: dict[str, list[float]], status: str = "finished", warmup_s: float = 0.0, **settings: Any
    ) -> Result:
        window = Window(warmup_s, math.inf) if warmup_s else None
        runs = [PolicyRun(name, 0, _recording(values, status), window) for name, values in policies.items()]
        return Result({"name": "toy"}, "0.1.0", 7, runs, **settings)

    return make
