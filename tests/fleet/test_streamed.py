"""Tables of a fleet that are written during the run: the same rows as those that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import simqueue as sq

SCENARIO: dict[str, Any] = {
    "step_time": {"kind": "linear", "overhead_s": 0.005, "per_prefill_token_s": 2e-5, "per_decode_s": 1e-4},
    "kv_cache": {"blocks": 300, "prefix_caching": True},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 60},
        "num_requests": 300,
        "prompt_tokens": {"distribution": "lognormal", "mean": 200, "cv": 1},
        "output_tokens": {"distribution": "lognormal", "mean": 40, "cv": 1},
    },
    "policies": {
        "p": {
            "scheduler": "chunked",
            "fleet": {
                "replicas": 3,
                "router": "least_outstanding",
                "in_flight": "resume",
                "failures": {"mtbf_s": 2, "repair_s": 0.5},
            },
        }
    },
}


def test_streamed_tables_have_the_same_rows(tmp_path: Path) -> None:
    """Requests in order of arrival; steps in order of time for each replica; the summary to the last bit."""
    kept, streamed = sq.run(SCENARIO), sq.run(SCENARIO, stream_to=tmp_path / "tables")
    pd.testing.assert_frame_equal(kept.requests, streamed.requests, check_exact=True)
    tables = [
        one.steps.sort_values(["replica", "start_s"], kind="stable", ignore_index=True) for one in (kept, streamed)
    ]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    pd.testing.assert_frame_equal(kept.replicas, streamed.replicas, check_exact=True)
    assert set(kept.requests["resent"]) > {0}
