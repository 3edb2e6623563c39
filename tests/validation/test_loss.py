"""V9: without a queue, the share of lost requests is that of Erlang's B formula for any distribution of outputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import simqueue
from simqueue.theory.many_servers import erlang_b

SEATS, STEP_S, STEPS = 5, 0.002, 500
SERVICE_S = STEP_S * STEPS
OFFERED = 3.0
REQUESTS, SEEDS = 2500, 12


def lost_share(output: dict[str, Any], seed: int, limit: int | None = 0) -> float:
    """Return the share of Poisson arrivals that are rejected because no seat is free, in one run."""
    result = simqueue.run(
        {
            "seed": seed,
            "step_time": {"kind": "constant", "seconds": STEP_S},
            "kv_cache": {"blocks": 10**6},
            "max_queued_requests": limit,
            "workload": {
                "arrivals": {"process": "poisson", "rate_rps": OFFERED / SERVICE_S},
                "prompt_tokens": {"distribution": "constant", "value": 1},
                "output_tokens": output,
                "num_requests": REQUESTS,
            },
            "policies": {"one": {"scheduler": "chunked", "max_num_seqs": SEATS, "max_num_batched_tokens": SEATS}},
        },
        check=False,
    )
    row = result.summary.iloc[0]
    assert row["completed"] + row["rejected"] == REQUESTS
    return float(row["rejected"]) / REQUESTS


@pytest.mark.slow
@pytest.mark.parametrize(
    "output",
    [
        {"distribution": "constant", "value": STEPS},
        {"distribution": "geometric", "mean": STEPS},
        {"distribution": "uniform", "low": 1, "high": 2 * STEPS - 1},
    ],
    ids=["constant", "geometric", "uniform"],
)
def test_a_full_house_loses_what_erlang_says(output: dict[str, Any]) -> None:
    """|z| < 4 over 12 seeds; steps are 1/500 of a service, so waiting for a step's end hardly counts."""
    shares = np.array([lost_share(output, seed) for seed in range(SEEDS)])
    half_s = shares.std(ddof=1) / math.sqrt(SEEDS)
    assert abs(shares.mean() - erlang_b(SEATS, OFFERED)) < 4 * half_s
    assert half_s < 0.03 * shares.mean()


def test_a_queue_without_limit_loses_nobody() -> None:
    """Without the key all requests wait."""
    assert lost_share({"distribution": "constant", "value": STEPS}, 0, limit=None) == 0.0


def test_the_limit_counts_who_waits_and_says_so() -> None:
    """One seat and a queue of one: of four requests at once two are served and two are rejected with the reason."""
    result = simqueue.run(
        {
            "step_time": {"kind": "constant", "seconds": 0.01},
            "kv_cache": {"blocks": 100},
            "max_queued_requests": 1,
            "workload": {
                "requests": [{"id": name, "arrival_s": 0, "prompt_tokens": 4, "output_tokens": 2} for name in "abcd"]
            },
            "policies": {
                "one": {"scheduler": "chunked", "max_num_seqs": 1, "max_num_batched_tokens": 64},
                "waves": {"scheduler": "static", "max_num_seqs": 1},
            },
        }
    )
    for _, table in result.requests.groupby("policy"):
        assert table["status"].tolist() == ["finished", "finished", "rejected", "rejected"]
        assert (
            table["reject_reason"].iloc[2] == "queue full: 2 requests wait, 1 seats are free, max_queued_requests is 1"
        )
