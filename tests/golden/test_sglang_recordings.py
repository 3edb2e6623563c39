"""Schedules that were recorded from the real scheduler of SGLang are reproduced exactly.

The test suite plays a choice that reaches every rule; all of them are compared by ``python -m simqueue.conformance``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simqueue.conformance import first_difference, main
from simqueue.datafiles.text import text_lines
from simqueue.errors import InputError

FOLDER = Path(__file__).parents[1] / "data" / "golden-sglang"
COUNTS = {"0.4.0": 77, "0.5.6": 99, "0.5.23": 105}
IN_ALL = (
    *("02_chunk_256", "12_prefix_inflight", "28_one_token", "29_inbatch_prefix_lpm", "33_random_policy"),
    *("11_prefix_shared_dfs-weight", "21_max_prefill_small", "17_lof", "43_overlap_prefix_lpm"),
    *("44_overlap_mixed", "49_overlap_max_running_4"),
)
CHOICE = (
    *((version, case) for version in COUNTS for case in IN_ALL),
    *(("0.4.0", case) for case in ("75_gate_boundary_451", "32_two_outgrow", "fuzz_35", "22_noradix_chunk_ignore_eos")),
    *(("0.5.6", case) for case in ("75_gate_boundary_450", "57_page16_mixed", "fuzz_31", "61_evict_priority")),
    *(("0.5.6", case) for case in ("pfuzz_12", "fuzz_15", "65_priority_preempt_tight")),
    *(("0.5.23", case) for case in ("75_gate_boundary_450", "57_page16_mixed", "67_routing_key", "68_hrrn")),
    *(("0.5.23", case) for case in ("71_prefill_max_requests", "70_prefill_decode_interval", "61_evict_slru")),
    *(("0.5.23", case) for case in ("74_retract_priority", "pfuzz_09", "rfuzz_08", "58_page16_noradix")),
)


@cache
def recordings(version: str) -> dict[str, dict[str, Any]]:
    """Return all recordings of a version by the name of their case."""
    file = FOLDER / f"sglang-{version}.jsonl.zst"
    found = [json.loads(line) for line in text_lines(file, str(file))]
    return {recorded["case"]: recorded for recorded in found}


def test_all_recordings_are_here() -> None:
    """A missing recording would go unnoticed otherwise."""
    assert {version: len(recordings(version)) for version in COUNTS} == COUNTS


@pytest.mark.parametrize(("version", "case"), CHOICE)
def test_recorded_schedule_is_reproduced(version: str, case: str) -> None:
    """Turns, order, budgets, memory and times agree, and what requests see of them if equal steps are folded."""
    recorded = recordings(version)[case]
    assert first_difference(recorded, check=True) is None
    assert first_difference(recorded, fast=True, check=True) is None


def _decode(recorded: dict[str, Any], key: str) -> dict[str, Any]:
    step: dict[str, Any] = next(step for step in recorded["steps"] if key in step)
    return step


def alter_order(recorded: dict[str, Any]) -> None:
    """Reverse a batch."""
    step = next(step for step in recorded["steps"] if len(step.get("scheduled", ())) > 1)
    step["scheduled"] = dict(reversed(step["scheduled"].items()))


def alter_ratio(recorded: dict[str, Any]) -> None:
    """Change the last digit of the ratio."""
    _decode(recorded, "ratio")["ratio"] += 1e-11


def alter_budget(recorded: dict[str, Any]) -> None:
    """Add one token to a budget."""
    _decode(recorded, "budget")["budget"][0] += 1


def alter_memory(recorded: dict[str, Any]) -> None:
    """Add one evictable token after a step."""
    _decode(recorded, "evictable_after")["evictable_after"] += 1


def alter_queue(recorded: dict[str, Any]) -> None:
    """Add a waiting request."""
    _decode(recorded, "waiting")["waiting"].append("9")


def alter_finish(recorded: dict[str, Any]) -> None:
    """Let a request finish a microsecond later."""
    next(iter(recorded["finished"].values()))["finish_ms"] += 0.001


def alter_retractions(recorded: dict[str, Any]) -> None:
    """Add a retraction."""
    next(iter(recorded["finished"].values()))["retractions"] += 1


@pytest.mark.parametrize(
    "alter",
    [alter_order, alter_ratio, alter_budget, alter_memory, alter_queue, alter_finish, alter_retractions],
)
def test_a_changed_recording_differs(alter: Callable[[dict[str, Any]], None]) -> None:
    """Each kind of change is found."""
    recorded = copy.deepcopy(recordings("0.5.23")["12_prefix_inflight"])
    alter(recorded)
    assert first_difference(recorded) is not None


def test_the_command_reads_many_recordings_in_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line of a JSON Lines file is a recording, and gets a line."""
    case = recordings("0.4.0")["12_prefix_inflight"]
    other = copy.deepcopy(case)
    alter_budget(other)
    file = tmp_path / "two.jsonl"
    file.write_text(f"{json.dumps(case)}\n{json.dumps(other)}\n", encoding="utf-8")
    assert main([str(file)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("12_prefix_inflight: ok")
    assert "budget" in second


@pytest.mark.parametrize("line", ["[1]", "{"])
def test_a_line_that_is_no_recording_is_an_error(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named in one line."""
    file = tmp_path / "wrong.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    assert main([str(file)]) == 2
    assert "line 1" in capsys.readouterr().err


def test_an_unknown_version_is_an_error() -> None:
    """Rules of a version are not guessed from another one."""
    recorded = {**recordings("0.4.0")["12_prefix_inflight"], "version": "0.5.7"}
    with pytest.raises(InputError, match="unknown version of sglang"):
        first_difference(recorded)
