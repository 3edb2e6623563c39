"""What comparisons of routers share: one decision, many decisions, and files that are no recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simqueue.conformance import first_routing_difference, main
from simqueue.conformance.decisions import count_differences, decision_differences


@pytest.mark.parametrize(
    ("chances", "recorded", "line"),
    [
        ({1: 1.0}, 1, None),
        ({0: 0.5, 2: 0.5}, 2, None),
        ({0: 0.5, 2: 0.5}, 1, "worker 0 or 2 (why), recorded 1"),
        ({0: 0.0, 2: 1.0}, 0, "worker 2 (why), recorded 0"),
        ({}, None, None),
        ({}, 0, "worker none (why), recorded 0"),
        ({0: 1.0}, None, "worker 0 (why), recorded none"),
    ],
)
def test_a_decision_agrees_if_it_has_a_chance(
    chances: dict[int, float], recorded: int | None, line: str | None
) -> None:
    """The recorded replica must be one with a chance above 0; none only where nothing can be chosen."""
    assert next(decision_differences(chances, recorded, "why"), None) == line


def test_counts_agree_within_deviations() -> None:
    """Of 100 choices at 1/2, the deviation is 5: counts up to 4.5 * 5 + 1 = 23.5 from 50 agree."""
    even = {0: 0.5, 1: 0.5}
    assert list(count_differences(even, [73, 27])) == []
    assert len(list(count_differences(even, [74, 26]))) == 2


def test_a_count_of_what_cannot_be_chosen_differs() -> None:
    """A single choice of a replica whose chance is 0 is a difference."""
    assert list(count_differences({0: 1.0}, [99, 1, 0]))[-1].startswith("worker 1 0 of 100 times")


def plain_recording() -> dict[str, Any]:
    """Return what round robin over two workers, one of them down for a time, must decide."""
    send: dict[str, Any] = {"op": "send", "prompt": [[1, 0, 4]], "loads": [0, 0], "hold": True}
    down, up = ({"op": "health", "worker": 1, "ok": ok} for ok in (False, True))
    steps = [{**send, "id": "0", "worker": 0}, down, {**send, "id": "1", "worker": 0}, up]
    steps += [{"op": "finish", "id": "0"}, {"op": "sleep", "s": 1.0}, {**send, "id": "2", "worker": 0}]
    workers = ["http://a", "http://b"]
    common = {"router": "sglang-router", "version": "0.3.2", "case": "rr", "policy": "round_robin", "config": {}}
    return {**common, "workers": workers, "steps": steps}


def test_a_recording_that_agrees_has_no_difference() -> None:
    """The counter of round robin counts decisions, and is taken modulo the healthy workers."""
    assert first_routing_difference(plain_recording()) is None


def test_a_difference_names_the_step() -> None:
    """The line has the number of the step, the request, our worker and the recorded one."""
    altered = plain_recording()
    altered["steps"][6]["worker"] = 1
    assert first_routing_difference(altered) == "step 6 (send 2): worker 0 (turn), recorded 1"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"router": "sglang-ruter"}, "did you mean 'sglang-router'"),
        ({"policy": "round_robbin"}, "did you mean 'round_robin'"),
        ({"steps": [{"op": "stand"}]}, "'stand'"),
        ({"steps": [{"op": "send", "id": "0"}]}, "not a recording of sglang-router"),
        ({"router": ["sglang-router"]}, "unknown router"),
    ],
)
def test_what_is_no_recording_is_told_in_one_line(
    change: dict[str, Any], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that cannot be walked through gives one line with its name on stderr, and exit code 2."""
    file = tmp_path / "recording.json"
    file.write_text(json.dumps({**plain_recording(), **change}), encoding="utf-8")
    assert main([str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert str(file) in shown.err
    assert text in shown.err
