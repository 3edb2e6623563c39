"""How much of a run the GPU is busy, wherever the run is cut."""

from __future__ import annotations

import pytest

import simqueue


@pytest.mark.parametrize("horizon_s", [0.001, 0.015, 0.02, 0.025, 0.105, 1.0])
@pytest.mark.parametrize(
    "policy",
    [
        {"scheduler": "chunked"},
        {"scheduler": "static"},
        {"engine": "vllm", "version": "0.33.0", "max_num_seqs": 8, "max_num_batched_tokens": 64},
    ],
    ids=["chunked", "static", "vllm-async"],
)
@pytest.mark.parametrize("fast", [True, False])
def test_a_gpu_that_never_rests_is_busy_all_the_time(policy: dict[str, object], horizon_s: float, fast: bool) -> None:
    """One request keeps the GPU busy from its arrival on; a horizon inside a step does not change that."""
    scenario = {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"blocks": 100},
        "horizon_s": horizon_s,
        "fast": fast,
        "workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 16, "output_tokens": 400}]},
        "policies": {"one": policy},
    }
    row = simqueue.run(scenario).summary.iloc[0]
    assert row["gpu_busy_share"] == pytest.approx(1.0, rel=1e-12)
