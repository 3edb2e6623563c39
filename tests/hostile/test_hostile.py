"""Every hostile input is answered at once and in plain lines, with exit code 2; nothing hangs or is "unexpected"."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .answers import faults
from .corpus import corpus

CASES = corpus()
_PLAYER = Path(__file__).with_name("player.py")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what the command of each case did. All are played in one process, which ends if one of them hangs."""
    folder = tmp_path_factory.mktemp("hostile")
    commands = [case.written(folder / str(number)) for number, case in enumerate(CASES)]
    report = folder / "report"
    text = json.dumps(commands)
    subprocess.run([sys.executable, str(_PLAYER), str(report)], input=text, text=True, check=False, cwd=folder)
    lines = report.read_text(encoding="ascii").splitlines()
    return dict(zip((case.name for case in CASES), map(json.loads, lines), strict=False))


def test_there_are_many_different_cases() -> None:
    """Names differ, so that none is looked at in place of another."""
    assert max(Counter(case.name for case in CASES).values()) == 1
    assert len(CASES) >= 200


def test_bad_input_is_refused_at_once_and_in_plain_lines(answers: dict[str, dict[str, Any]]) -> None:
    """Exit code 2, at most 20 errors and their number, no control characters, within 2 seconds and 500 MiB."""
    unanswered = [case.name for case in CASES if case.name not in answers]
    assert not unanswered, f"this command did not end: {unanswered[0]}"
    wrong = {name: (found, said) for name, said in answers.items() if (found := "; ".join(faults(said)))}
    assert not wrong
