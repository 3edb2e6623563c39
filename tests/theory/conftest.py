"""Small scenarios, given and random, for the tests against theory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

POLICIES: dict[str, dict[str, Any]] = {
    "continuous": {"scheduler": "continuous", "max_num_seqs": 6, "max_num_batched_tokens": 300},
    "separate": {"scheduler": "continuous", "prefill": "separate", "max_num_seqs": 6, "max_num_batched_tokens": 300},
    "chunked": {"scheduler": "chunked", "max_num_seqs": 6, "max_num_batched_tokens": 100},
    "chunked_capped": {"scheduler": "chunked", "max_num_seqs": 6, "max_num_batched_tokens": 100, "chunk_tokens": 32},
    "static": {"scheduler": "static", "max_num_seqs": 6},
}


@pytest.fixture
def offline() -> Callable[..., dict[str, Any]]:
    """Return a function that makes workloads of requests at time 0 from (prompt, output) tokens."""

    def made(*lengths: tuple[int, int]) -> dict[str, Any]:
        rows = [{"arrival_s": 0.0, "prompt_tokens": prompt, "output_tokens": output} for prompt, output in lengths]
        return {"requests": rows}

    return made


@pytest.fixture(params=range(6))
def random_scenario(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A small scenario drawn at random: affine step time, random traffic, five policies; half of them short of KV."""
    rng = np.random.default_rng(request.param)
    a, b, c, d = rng.uniform([5e-3, 1e-4, 1e-5, 1e-8], [2e-2, 1e-3, 1e-4, 1e-6]).tolist()
    arrivals = np.cumsum(rng.exponential(float(rng.uniform(0.02, 0.3)), 40)).tolist()
    prompts, outputs = rng.integers(1, 200, 40).tolist(), rng.integers(1, 60, 40).tolist()
    columns = zip(arrivals, prompts, outputs, strict=True)
    rows = [{"arrival_s": at_s, "prompt_tokens": prompt, "output_tokens": output} for at_s, prompt, output in columns]
    return {
        "step_time": {
            "kind": "linear",
            "overhead_s": a,
            "per_decode_s": b,
            "per_prefill_token_s": c,
            "per_context_token_s": d,
        },
        "kv_cache": {"block_size": 16, "blocks": 40 if request.param % 2 else 1000},
        "workload": {"requests": rows},
        "policies": POLICIES,
    }
