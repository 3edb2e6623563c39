"""``python -m simqueue.conformance`` can fail: whatever is altered in a recording is reported in one line."""

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
    """Return the first step, and its number among those that run something, whose `key` has so many entries."""
    steps = [step for step in recorded["steps"] if step["scheduled"]]
    return next((n, step) for n, step in enumerate(steps) if len(step.get(key, ())) >= least)


def alter_tokens(recorded: dict[str, Any]) -> str:
    """Give a request one token more in a step."""
    number, step = step_with(recorded, "scheduled")
    step["scheduled"][next(iter(step["scheduled"]))] += 1
    return f"step {number} at"


def alter_order(recorded: dict[str, Any]) -> str:
    """Turn the order of a step round."""
    number, step = step_with(recorded, "scheduled", 2)
    step["scheduled"] = dict(reversed(step["scheduled"].items()))
    return f"step {number} at"


def alter_preemption(recorded: dict[str, Any]) -> str:
    """Leave a preemption out."""
    number, step = step_with(recorded, "preempted")
    step["preempted"] = []
    return f"step {number} at"


def alter_hit(recorded: dict[str, Any]) -> str:
    """Find a block less in the prefix cache."""
    number, step = step_with(recorded, "cached")
    step["cached"][next(iter(step["cached"]))] -= recorded["config"]["block_size"]
    return f"step {number} at"


def alter_free_blocks(recorded: dict[str, Any]) -> str:
    """Have a block more in the pool after scheduling."""
    number, step = step_with(recorded, "scheduled")
    step["free_blocks"] += 1
    return f"step {number} at"


def alter_free_blocks_after(recorded: dict[str, Any]) -> str:
    """Have a block more in the pool after the step."""
    number, step = step_with(recorded, "finished")
    step["free_blocks_after"] += 1
    return f"step {number} at"


def alter_waiting(recorded: dict[str, Any]) -> str:
    """Have one more in the queue."""
    number, step = step_with(recorded, "scheduled")
    step["waiting"] += 1
    return f"step {number} at"


def alter_admission(recorded: dict[str, Any]) -> str:
    """Call somebody who runs newly admitted."""
    number, step = step_with(recorded, "new")
    step["new"] = []
    return f"step {number} at"


def alter_start(recorded: dict[str, Any]) -> str:
    """Begin a step a microsecond later."""
    number, step = step_with(recorded, "scheduled")
    step["start_ms"] += 0.001
    return f"step {number} at"


def drop_step(recorded: dict[str, Any]) -> str:
    """Lose the last step."""
    del recorded["steps"][-1]
    return "steps, recorded"


def alter_first_token(recorded: dict[str, Any]) -> str:
    """Let a first token come a microsecond later."""
    recorded["finished"]["3"]["first_token_ms"] += 0.001
    return "request 3: first_token_s"


def alter_finish(recorded: dict[str, Any]) -> str:
    """Let a request finish a microsecond later."""
    recorded["finished"]["3"]["finish_ms"] += 0.001
    return "request 3: finish_s"


def alter_preemption_count(recorded: dict[str, Any]) -> str:
    """Count a preemption more."""
    recorded["finished"]["3"]["preemptions"] += 1
    return "request 3: preemptions"


def alter_output(recorded: dict[str, Any]) -> str:
    """Count a token less."""
    recorded["finished"]["3"]["output_tokens"] -= 1
    return "request 3: output_tokens"


def forget_request(recorded: dict[str, Any]) -> str:
    """Say nothing of what became of a request."""
    del recorded["finished"]["3"]
    return "request 3 is not in the recording"


ALTERATIONS = [value for name, value in list(globals().items()) if name.startswith(("alter_", "drop_", "forget_"))]


@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda alter: alter.__name__)
@pytest.mark.parametrize("name", [TIGHT, ASYNC])
def test_an_altered_recording_differs(alter: Callable[[dict[str, Any]], str], name: str, recorded: Read) -> None:
    """A single changed number anywhere is found, and the line names the step or the request."""
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
    """When a step ran counts beside when it was decided."""
    altered = recorded(ASYNC)
    altered["steps"][5]["exec_end_ms"] += 0.001
    assert "step 5 at" in (first_difference(altered) or "")


@pytest.mark.parametrize(("key", "change"), [("f", 1), ("s", 0.001)])
def test_compact_steps_are_compared_too(key: str, change: float, recorded: Read) -> None:
    """In the compact form free blocks and times of any step count."""
    altered = recorded(COMPACT)
    altered["steps"][1200][key] += change
    difference = first_difference(altered)
    assert difference is not None
    assert difference.startswith("step 1200 at")


def test_fold_finds_what_became_of_a_request(recorded: Read) -> None:
    """Folded runs compare first tokens and finishes."""
    altered = recorded(TIGHT)
    altered["finished"]["7"]["finish_ms"] += 0.001
    assert "request 7: finish_s" in (first_difference(altered, fast=True) or "")


@pytest.fixture
def files(tmp_path: Path, recorded: Read) -> dict[str, str]:
    """Return one file that agrees, one that differs, one that is no recording, one without content."""
    right, wrong = recorded("vllm-0.33.0/23_no_chunked"), recorded("vllm-0.33.0/23_no_chunked")
    wrong["steps"][0]["free_blocks"] -= 1
    contents = {"right": json.dumps(right), "wrong": json.dumps(wrong), "other": '{"engine": "vllm"}', "broken": "{"}
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(content, encoding="utf-8")
    return {name: str(tmp_path / f"{name}.json") for name in [*contents, "missing"]}


def test_command_says_ok_and_exits_with_0(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A file that agrees gives one line and exit code 0."""
    assert main([files["right"]]) == 0
    assert capsys.readouterr().out == f"{files['right']}: ok\n"


def test_command_shows_the_first_difference_and_exits_with_1(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line a file, the others are still compared, and the exit code is 1."""
    assert main([files["wrong"], files["right"]]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{files['wrong']}: step 0 at 0.0 ms: free_blocks")
    assert second == f"{files['right']}: ok"


@pytest.mark.parametrize("which", ["other", "broken", "missing"])
def test_command_refuses_what_is_no_recording_with_2(
    which: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that cannot be used is one line on stderr and exit code 2, even where another differs."""
    assert main([files["wrong"], files[which]]) == 2
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == len(shown.err.splitlines()) == 1
    assert files[which] in shown.err


def test_command_without_files_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments it shows its usage and exits with 2; asked for help with 0."""
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.count("usage: python -m simqueue.conformance FILE...") == 2
