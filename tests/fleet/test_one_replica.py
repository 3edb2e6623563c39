"""A fleet of one replica is no fleet, through the whole program: every file has the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.routing import ROUTERS

SCENARIO: dict[str, Any] = {
    "step_time": {"kind": "linear", "overhead_s": 0.005, "per_prefill_token_s": 2e-5, "per_decode_s": 1e-4},
    "kv_cache": {"blocks": 60, "prefix_caching": True},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 30},
        "num_requests": 60,
        "prompt_tokens": {"distribution": "lognormal", "mean": 100, "cv": 1},
        "output_tokens": {"distribution": "lognormal", "mean": 30, "cv": 1},
    },
    "max_queued_requests": 5,
}


def files(fleet: dict[str, Any] | None, folder: Path) -> dict[str, bytes]:
    """Return what a run writes, without the scenario that was run."""
    policy = {"scheduler": "chunked", "max_num_seqs": 4, "fleet": fleet}
    sq.run({**SCENARIO, "policies": {"p": policy}}).save(folder, figures=False)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in {".parquet", ".csv"}}


@pytest.mark.parametrize("kind", sorted(ROUTERS))
def test_whatever_the_router(kind: str, tmp_path: Path) -> None:
    """Tables and summary do not know that there is a router."""
    assert files({"replicas": 1, "router": kind}, tmp_path / "fleet") == files(None, tmp_path / "alone")
