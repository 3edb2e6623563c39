"""Small scenarios that tests sweep, and what they compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RATE = "workload.arrivals.rate_rps"
SEATS = "policies.*.max_num_seqs"


def toy(requests: int = 15, **more: Any) -> dict[str, Any]:
    """Return a scenario of two policies whose cells take some milliseconds."""
    return {
        "seed": 3,
        "step_time": {"kind": "linear", "overhead_s": 0.01, "per_prefill_token_s": 2e-5},
        "kv_cache": {"blocks": 200},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 8},
            "num_requests": requests,
            "prompt_tokens": {"distribution": "constant", "value": 64},
            "output_tokens": {"distribution": "geometric", "mean": 8},
        },
        "policies": {
            "a": {"scheduler": "chunked", "max_num_seqs": 4},
            "b": {"scheduler": "continuous", "max_num_seqs": 4},
        },
        **more,
    }


def rows_in(folder: Path) -> bytes:
    """Return the bytes of the table of a sweep."""
    return (folder / "rows.parquet").read_bytes()
