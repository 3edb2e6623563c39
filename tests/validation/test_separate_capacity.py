"""The capacity law with prefill in separate steps, compared with the throughput of a backlog."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simqueue


def scenario(arrivals: dict[str, Any], requests: int, kv_cache: dict[str, Any], prefill: str) -> dict[str, Any]:
    """Return one policy on an affine step cost, so that the law is exact up to rounding."""
    return {
        "step_time": {"kind": "linear", "overhead_s": 0.02, "per_prefill_token_s": 2e-5, "per_decode_s": 5e-4},
        "kv_cache": kv_cache,
        "workload": {
            "arrivals": arrivals,
            "prompt_tokens": {"distribution": "constant", "value": 500},
            "output_tokens": {"distribution": "geometric", "mean": 100},
            "num_requests": requests,
        },
        "policies": {
            "one": {
                "scheduler": "continuous",
                "prefill": prefill,
                "max_num_seqs": 32,
                "max_num_batched_tokens": 8192,
            }
        },
    }


@pytest.mark.slow
@pytest.mark.parametrize("prefill", ["separate", "mixed"])
@pytest.mark.parametrize("layout", ["paged", "contiguous"])
def test_a_short_pool_limits_separate_prefill_as_it_limits_mixed(prefill: str, layout: str) -> None:
    """With 400 blocks the pool binds; the law is within 4 % of the throughput in the middle of a backlog of 3,000."""
    kv_cache = {"blocks": 400, "layout": layout}
    rate_rps = 2.0
    light = simqueue.run(scenario({"process": "poisson", "rate_rps": rate_rps}, 100, kv_cache, prefill), check=False)
    row = light.summary.iloc[0]
    assert row["binding"] == "kv"
    backlog = simqueue.run(scenario({"process": "all_at_once"}, 3000, kv_cache, prefill), check=False)
    leaving_s = np.sort(backlog.requests["finish_s"].to_numpy())[600:2400]
    throughput = (len(leaving_s) - 1) / (leaving_s[-1] - leaving_s[0])
    assert rate_rps / row["load"] == pytest.approx(throughput, rel=0.04)
