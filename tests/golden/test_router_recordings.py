"""Every decision that was recorded from a real router is one that our rules can take."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simqueue.conformance import first_routing_difference
from simqueue.datafiles.text import read_json
from simqueue.errors import InputError

FOLDER = Path(__file__).parents[1] / "data" / "routers"
FILES = sorted(FOLDER.glob("*/*.json.gz"))
COUNTS = {
    "dynamo-1.6.1": 32,
    "litellm-1.110.2": 12,
    "sglang-router-0.1.9": 11,
    "sglang-router-0.2.3": 18,
    "sglang-router-0.2.4": 18,
    "sglang-router-0.3.2": 32,
    "vllm-router-0.1.12": 21,
    "vllm-router-0.1.17": 36,
}


def test_all_recordings_are_here() -> None:
    """A missing file would go unnoticed otherwise."""
    counts = {folder.name: len(list(folder.glob("*.json.gz"))) for folder in FOLDER.iterdir() if folder.is_dir()}
    assert {name: counts[name] for name in COUNTS} == COUNTS


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name.removesuffix('.json.gz')}")
def test_recorded_decisions_are_ours(file: Path) -> None:
    """Chosen workers, loads, cached blocks and counts agree."""
    assert first_routing_difference(read_json(file)) is None


def _altered(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a step with each of its recorded results changed."""
    for key in ("effective_prefill_tokens",):
        if key in step:
            yield {**step, key: step[key] + 1}
    for key in ("overlap_blocks", "loads"):
        if key in step:
            changed = copy.deepcopy(step[key])
            changed[0] = [changed[0][0] + 1, *changed[0][1:]] if key == "loads" else changed[0] + 1
            yield {**step, key: changed}
    for key in ("picked", "counts"):
        if key in step and 0 in step[key]:
            yield {**step, key: [count or 1 for count in step[key]]}


@pytest.mark.parametrize("name", ["dynamo-1.6.1/20_random", "dynamo-1.6.1/14_block64"])
def test_any_other_result_is_a_difference(name: str) -> None:
    """Each compared quantity of each step, changed by one, is found."""
    recorded = read_json(FOLDER / f"{name}.json.gz")
    tried = 0
    for number, step in enumerate(recorded["steps"]):
        for altered in _altered(step):
            steps = [*recorded["steps"][:number], altered, *recorded["steps"][number + 1 :]]
            difference = first_routing_difference({**recorded, "steps": steps})
            assert difference is not None
            assert difference.startswith(f"step {number} ")
            tried += 1
    assert tried >= 10


@pytest.mark.parametrize(
    ("column", "change", "text"),
    [
        ("prefill_worker", lambda worker: 1 - worker, "prefill_worker"),
        ("decode_worker", lambda worker: 1 - worker, "decode_worker"),
        ("destination_activated_ms", lambda ms: ms - 0.01, "activated"),
        ("destination_reserved_ms", lambda ms: ms - 0.01, "reserved"),
        ("source_released_ms", lambda ms: ms - 30, "released"),
    ],
)
def test_a_replay_with_another_worker_or_time_differs(column: str, change: Any, text: str) -> None:
    """Workers by turn, reservation, transfer and release of a request are compared."""
    recorded = read_json(FOLDER / "dynamo-1.6.1" / "33_replay_pd_rr.json.gz")
    rows = [dict(row) for row in recorded["requests"]]
    rows[34][column] = change(rows[34][column])
    assert text in (first_routing_difference({**recorded, "requests": rows}) or "")


def test_an_idle_decode_worker_takes_a_request_at_once() -> None:
    """A later start on an idle worker is a difference: the transfer takes 1024 * 131072 bytes / 25 GB/s = 5.37 ms."""
    recorded = read_json(FOLDER / "dynamo-1.6.1" / "33_replay_pd_rr.json.gz")
    rows = [dict(row) for row in recorded["requests"]]
    rows[0]["destination_activated_ms"] += 0.001
    rows[0]["source_released_ms"] += 0.001
    assert first_routing_difference({**recorded, "requests": rows}) == (
        "request 0: activated 5.369709 ms after the reservation, transfer 5.368709 ms"
    )


def test_of_a_replay_by_cache_and_load_only_transfers_are_compared() -> None:
    """The order of workers is free then; a worker that is not there, and another time of a transfer, are told."""
    recorded = read_json(FOLDER / "dynamo-1.6.1" / "33_replay_pd_rr.json.gz")
    recorded["call"]["router_mode"] = "kv_router"
    rows = recorded["requests"]
    rows[1]["prefill_worker"] = 0
    assert first_routing_difference(recorded) is None
    rows[1]["prefill_worker"] = 2
    assert first_routing_difference(recorded) == "request 1: prefill_worker 2, there are 2"
    rows[1]["prefill_worker"] = 1
    rows[1]["destination_activated_ms"] -= 1
    assert "transfer 5.368709 ms" in (first_routing_difference(recorded) or "")


WEIGHTED = sorted(FOLDER.glob("dynamo-1.6.1/4[0-8]*.json.gz"))


@pytest.mark.parametrize("file", WEIGHTED, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_recordings_tell_keys_apart(file: Path) -> None:
    """With default values instead of those that were recorded, or without a threshold, decisions differ."""
    recorded = read_json(file)
    recorded["config"] = {}
    assert first_routing_difference(recorded) is not None


def test_a_recorded_key_that_is_not_known_is_told() -> None:
    """Its name is in the line."""
    recorded = read_json(FOLDER / "dynamo-1.6.1" / "40_credit.json.gz")
    recorded["config"] = {"overlap_score_credid": 1.0}
    with pytest.raises(InputError, match="did you mean 'overlap_score_credit'"):
        first_routing_difference(recorded)
