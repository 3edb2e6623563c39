"""The README: its commands run, and their output is as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def blocks(kind: str) -> list[str]:
    """Return the README's code blocks of one kind."""
    return re.findall(rf"```{kind}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(*arguments: str, where: Path) -> str:
    """Run Python in a folder and return its output."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(text: str) -> list[str]:
    """Return the lines of a text without trailing spaces."""
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.slow
def test_the_first_command_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """The run of `make run` prints what the README shows, character for character."""
    block = next(block for block in blocks("console") if block.startswith("$ make run\n"))
    printed = run("-m", "simqueue", "run", "azure-2023-conversation", where=tmp_path)
    assert shown(printed) == shown(block.removeprefix("$ make run\n"))


def test_the_python_lines_run(tmp_path: Path) -> None:
    """The Python example runs as it is and writes its figure."""
    (source,) = blocks("python")
    printed = run("-c", source, where=tmp_path)
    assert re.search(r"^chunked +429 ", printed, flags=re.MULTILINE)
    assert (tmp_path / "ttft.png").stat().st_size > 10_000


def test_the_scenario_runs(tmp_path: Path) -> None:
    """The scenario of the README is valid and runs; its three policies are in the table."""
    (source,) = blocks("yaml")
    (tmp_path / "mine.yaml").write_text(source, encoding="utf-8")
    printed = run("-m", "simqueue", "run", "mine.yaml", "--no-figures", where=tmp_path)
    assert all(name in printed for name in ("continuous", "chunked", "vllm"))


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")))
def test_links_lead_somewhere(target: str) -> None:
    """All files that the README links to exist."""
    assert (README.parent / target).exists()
