"""Every schedule that was recorded from the real scheduler is reproduced exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simqueue.conformance import first_difference

FOLDER = Path(__file__).parents[1] / "data" / "golden"
FILES = sorted(FOLDER.glob("*/*.json"))


def test_all_recordings_are_here() -> None:
    """69 schedules of 0.33.0 and 31 of 0.11.0 are compared; a missing file would go unnoticed otherwise."""
    counts = {folder.name: len(list(folder.glob("*.json"))) for folder in FOLDER.iterdir() if folder.is_dir()}
    assert counts == {"vllm-0.33.0": 69, "vllm-0.11.0": 31}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_recorded_schedule_is_reproduced(file: Path) -> None:
    """Steps, tokens, order, preemptions, hits, free blocks and times agree, folded and stepped; invariants hold."""
    recorded = json.loads(file.read_text(encoding="utf-8"))
    assert first_difference(recorded, check=True) is None
    assert first_difference(recorded, fast=True, check=True) is None


def test_recordings_reach_every_rule() -> None:
    """The recordings cover preemption, hits, priority, thresholds, chunking off, a watermark, a stall, async."""
    recordings = [json.loads(file.read_text(encoding="utf-8")) for file in FILES]
    configs = [recording["config"] for recording in recordings]
    assert any(config.get("async_scheduling") for config in configs)
    assert any(config["policy"] == "priority" for config in configs)
    assert any(config["enable_prefix_caching"] for config in configs)
    assert any(not config["enable_chunked_prefill"] for config in configs)
    assert any(config["long_prefill_token_threshold"] for config in configs)
    assert any(config.get("long_prefill_token_threshold_adaptive") for config in configs)
    assert any(config.get("watermark") for config in configs)
    assert any(config.get("scheduler_reserve_full_isl") is False for config in configs)
    assert any(recording["stalled"] for recording in recordings)
    assert sum(done["preemptions"] for recording in recordings for done in recording["finished"].values()) > 100
