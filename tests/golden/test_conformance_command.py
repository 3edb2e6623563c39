"""``python -m simqueue.conformance`` can fail: every change to a recording is reported in one line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simqueue.conformance import first_difference, main

Read = Callable[[str], dict[str, Any]]
TIGHT = "vllm-0.33.0/14_prefix_preempt"
ASYNC = "vllm-0.33.0/32_async_tight"
COMPACT = "vllm-0.33.0/26_workload_200_tight"


def step_with(recorded: dict[str, Any], key: str, least: int = 1) -> tuple[int, dict[str, Any]]:
    """Return the first step whose `key` has `least` entries, and its number among the steps that are not empty."""
    steps = [step for step in recorded["steps"] if step["scheduled"]]
    return next((n, step) for n, step in enumerate(steps) if len(step.get(key, ())) >= least)


def alter_tokens(recorded: dict[str, Any]) -> str:
    """Add one token to a request in a step."""
    number, step = step_with(recorded, "scheduled")
    step["scheduled"][next(iter(step["scheduled"]))] += 1
    return f"step {number} at"


def alter_order(recorded: dict[str, Any]) -> str:
    """Reverse the order of requests in a step."""
    number, step = step_with(recorded, "scheduled", 2)
    step["scheduled"] = dict(reversed(step["scheduled"].items()))
    return f"step {number} at"


def alter_preemption(recorded: dict[str, Any]) -> str:
    """Remove a preemption."""
    number, step = step_with(recorded, "preempted")
    step["preempted"] = []
    return f"step {number} at"


def alter_hit(recorded: dict[str, Any]) -> str:
    """Remove one block from a prefix cache hit."""
    number, step = step_with(recorded, "cached")
    step["cached"][next(iter(step["cached"]))] -= recorded["config"]["block_size"]
    return f"step {number} at"


def alter_free_blocks(recorded: dict[str, Any]) -> str:
    """Add one free block after scheduling."""
    number, step = step_with(recorded, "scheduled")
    step["free_blocks"] += 1
    return f"step {number} at"


def alter_free_blocks_after(recorded: dict[str, Any]) -> str:
    """Add one free block after the step."""
    number, step = step_with(recorded, "finished")
    step["free_blocks_after"] += 1
    return f"step {number} at"


def alter_waiting(recorded: dict[str, Any]) -> str:
    """Add one waiting request."""
    number, step = step_with(recorded, "scheduled")
    step["waiting"] += 1
    return f"step {number} at"


def alter_admission(recorded: dict[str, Any]) -> str:
    """Remove the list of new requests from a step."""
    number, step = step_with(recorded, "new")
    step["new"] = []
    return f"step {number} at"


def alter_start(recorded: dict[str, Any]) -> str:
    """Start a step one microsecond later."""
    number, step = step_with(recorded, "scheduled")
    step["start_ms"] += 0.001
    return f"step {number} at"


def drop_step(recorded: dict[str, Any]) -> str:
    """Remove the last step."""
    del recorded["steps"][-1]
    return "steps, recorded"


def alter_first_token(recorded: dict[str, Any]) -> str:
    """Move a first token one microsecond later."""
    recorded["finished"]["3"]["first_token_ms"] += 0.001
    return "request 3: first_token_s"


def alter_finish(recorded: dict[str, Any]) -> str:
    """Move a finish one microsecond later."""
    recorded["finished"]["3"]["finish_ms"] += 0.001
    return "request 3: finish_s"


def alter_preemption_count(recorded: dict[str, Any]) -> str:
    """Add one to the preemptions of a request."""
    recorded["finished"]["3"]["preemptions"] += 1
    return "request 3: preemptions"


def alter_output(recorded: dict[str, Any]) -> str:
    """Subtract one from the output tokens of a request."""
    recorded["finished"]["3"]["output_tokens"] -= 1
    return "request 3: output_tokens"


def forget_request(recorded: dict[str, Any]) -> str:
    """Remove the outcome of a request."""
    del recorded["finished"]["3"]
    return "request 3 is not in the recording"


ALTERATIONS = [value for name, value in list(globals().items()) if name.startswith(("alter_", "drop_", "forget_"))]


@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda alter: alter.__name__)
@pytest.mark.parametrize("name", [TIGHT, ASYNC])
def test_an_altered_recording_differs(alter: Callable[[dict[str, Any]], str], name: str, recorded: Read) -> None:
    """A single changed number is found, and the line names the step or the request."""
    original = recorded(name)
    if alter is alter_hit and not original["config"]["enable_prefix_caching"]:
        original = recorded("vllm-0.33.0/33_async_prefix")
    altered = copy.deepcopy(original)
    where = alter(altered)
    difference = first_difference(altered)
    assert difference is not None
    assert where in difference
    assert "\n" not in difference


def test_execution_times_of_asynchronous_steps_are_compared(recorded: Read) -> None:
    """The execution time of a step is compared, not only the time of its decision."""
    altered = recorded(ASYNC)
    altered["steps"][5]["exec_end_ms"] += 0.001
    assert "step 5 at" in (first_difference(altered) or "")


@pytest.mark.parametrize(("key", "change"), [("f", 1), ("s", 0.001)])
def test_compact_steps_are_compared_too(key: str, change: float, recorded: Read) -> None:
    """In the compact form, free blocks and times of every step are compared."""
    altered = recorded(COMPACT)
    altered["steps"][1200][key] += change
    difference = first_difference(altered)
    assert difference is not None
    assert difference.startswith("step 1200 at")


def test_folded_runs_compare_requests(recorded: Read) -> None:
    """Folded runs compare first tokens and finishes."""
    altered = recorded(TIGHT)
    altered["finished"]["7"]["finish_ms"] += 0.001
    assert "request 7: finish_s" in (first_difference(altered, fast=True) or "")


@pytest.fixture
def files(tmp_path: Path, recorded: Read) -> dict[str, str]:
    """Return paths of files: one agrees, one differs, one is no recording, one is no JSON, one is missing."""
    right, wrong = recorded("vllm-0.33.0/23_no_chunked"), recorded("vllm-0.33.0/23_no_chunked")
    wrong["steps"][0]["free_blocks"] -= 1
    contents = {"right": json.dumps(right), "wrong": json.dumps(wrong), "other": '{"engine": "vllm"}', "broken": "{"}
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(content, encoding="utf-8")
    return {name: str(tmp_path / f"{name}.json") for name in [*contents, "missing"]}


def test_command_says_ok_and_exits_with_0(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """For a file that agrees, one line is printed and the exit code is 0."""
    assert main([files["right"]]) == 0
    assert capsys.readouterr().out == f"{files['right']}: ok\n"


def test_command_shows_the_first_difference_and_exits_with_1(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line is printed per file, a difference does not stop the comparison, and the exit code is 1."""
    assert main([files["wrong"], files["right"]]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{files['wrong']}: step 0 at 0.0 ms: free_blocks")
    assert second == f"{files['right']}: ok"


@pytest.mark.parametrize("which", ["other", "broken", "missing"])
def test_command_exits_with_2_for_a_file_that_is_not_a_recording(
    which: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that cannot be read gives one line on stderr and exit code 2, even if another file differs."""
    assert main([files["wrong"], files[which]]) == 2
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == len(shown.err.splitlines()) == 1
    assert files[which] in shown.err


def test_command_without_files_shows_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments the usage is shown and the exit code is 2; with --help it is 0."""
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.count("usage: python -m simqueue.conformance FILE...") == 2


def recording_of_a_tie(step_us: int) -> dict[str, Any]:
    """Return what two requests get on constant steps if the second arrives on the microsecond at which one ends."""

    def request(number: int, arrival_us: int) -> dict[str, Any]:
        one = {"id": str(number), "arrival_ms": arrival_us / 1000, "prompt_len": 4, "output_len": 2}
        return {**one, "prompt": [[number, 0, 4]], "out_stream": 100 + number, "priority": 0}

    def outcome(first_us: int, finish_us: int) -> dict[str, Any]:
        times = {"first_token_ms": first_us / 1000, "finish_ms": finish_us / 1000}
        return {**times, "preemptions": 0, "output_tokens": 2}

    return {
        "engine": "vllm",
        "version": "0.11.0",
        "case": "tie",
        "config": {"block_size": 16, "usable_blocks": 100, "max_model_len": 64, "max_num_seqs": 4},
        "step_cost": {"base_us": step_us, "per_prefill_token_us": 0, "per_decode_us": 0},
        "requests": [request(0, 0), request(1, step_us)],
        "steps": [],
        "finished": {"0": outcome(step_us, 2 * step_us), "1": outcome(2 * step_us, 3 * step_us)},
    }


def test_an_arrival_with_the_end_of_a_step_is_in_the_next_one() -> None:
    """Case 91: milliseconds become seconds with one rounding, so an arrival on a microsecond is never after it."""
    rounded_up = [us for us in range(5000, 9000) if us / 1000 / 1000 > us / 1_000_000]
    assert len(rounded_up) > 5
    for us in (5000, *rounded_up[:5], *rounded_up[-5:]):
        assert first_difference(recording_of_a_tie(us), fast=True) is None
