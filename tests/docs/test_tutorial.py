"""The tutorial: all its commands run, in order and in one folder."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simqueue.cli import run_command

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
PROGRAM = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def commands() -> list[list[str]]:
    """Return all commands of the page, split into words."""
    blocks = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all commands and return the output of each, and the files written."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "calm.py").write_text(PROGRAM[0], encoding="utf-8")
    shown = {}
    with contextlib.chdir(folder):
        for words in commands():
            shown[" ".join(words)] = {"simqueue": command_line, "python": program}[words[0]](words[1:])
    shown["files"] = "\n".join(sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()))
    return shown


def command_line(words: list[str]) -> str:
    """Return the output of a command, run in this process: a start of Python for each would take most of the time."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run_command(words)
    assert code == 0, f"{' '.join(words)}: {err.getvalue()}"
    return out.getvalue()


def program(words: list[str]) -> str:
    """Return the output of a program."""
    done = subprocess.run([sys.executable, *words], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


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
