"""The tutorial: all its commands run, in order and in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
PROGRAM = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def commands() -> list[list[str]]:
    """Return all commands of the page, split into words."""
    blocks = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines()]


def as_run(words: list[str]) -> list[str]:
    """Return a command that uses the Python interpreter of the tests."""
    start = {"simqueue": ["-m", "simqueue"], "python": []}[words[0]]
    return [sys.executable, *start, *words[1:]]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all commands and return the output of each, and the files written."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "calm.py").write_text(PROGRAM[0], encoding="utf-8")
    shown = {}
    for words in commands():
        done = subprocess.run(
            as_run(words), cwd=folder, capture_output=True, encoding="utf-8", check=False, env={**os.environ}
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        shown[" ".join(words)] = done.stdout
    shown["files"] = "\n".join(sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()))
    return shown


def test_every_command_runs_and_writes_what_the_page_says(outputs: dict[str, str]) -> None:
    """All commands exit with 0 and write the scenario, the results and the page."""
    files = outputs["files"].splitlines()
    for name in ("first.yaml", "first.html", "results/first/summary.csv", "results/busy/summary.csv"):
        assert name in files
    assert len(outputs) == len(commands()) + 1


def test_more_traffic_overloads_static(outputs: dict[str, str]) -> None:
    """The warning that the page mentions is printed."""
    busy = next(text for command, text in outputs.items() if "rate_rps=30" in command)
    assert "warning: static: overloaded" in busy


def test_the_own_policy_trades_first_tokens_for_later_ones(outputs: dict[str, str]) -> None:
    """All requests finish under both policies; `calm` has the lower TPOT and the higher TTFT, as the page says."""
    rows = {words[0]: words[1:] for line in outputs["python calm.py"].splitlines()[1:] if (words := line.split())}
    chunked, calm = ([float(value) for value in rows[name]] for name in ("chunked", "calm"))
    assert chunked[0] == calm[0] == 200
    assert calm[1] > chunked[1]
    assert calm[2] < chunked[2]


def test_the_policy_is_short() -> None:
    """The program, with its scenario, has fewer than 40 lines."""
    assert len(PROGRAM) == 1
    assert len(PROGRAM[0].splitlines()) < 40
