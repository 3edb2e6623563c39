"""``--import``: schedulers of one's own on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from simqueue.cli import run_command
from simqueue.schedulers import SCHEDULERS

from ..helpers.toy_file import WriteToy

Capture = pytest.CaptureFixture[str]

POLICY = """
from simqueue.schedulers import Chunked, scheduler
from lib_of_{name} import LARGEST


@scheduler("{name}")
class Small(Chunked):
    summary = "small chunks"
    steady_rules = ("chunk",)

    def chunk(self, job, step):
        return min(super().chunk(job, step), LARGEST)
"""


@pytest.fixture(autouse=True)
def only_here() -> Iterator[None]:
    """Forget the schedulers that a test registers."""
    with patch.dict(SCHEDULERS):
        yield


def write_policy(folder: Path, name: str) -> Path:
    """Write a scheduler of its own name, with a module beside it that it imports."""
    folder.mkdir(exist_ok=True)
    (folder / f"lib_of_{name}.py").write_text("LARGEST = 16\n", encoding="utf-8")
    file = folder / f"policy_{name}.py"
    file.write_text(POLICY.format(name=name), encoding="utf-8")
    return file


def test_a_scheduler_from_a_file_runs_in_worker_processes_too(toy: WriteToy, tmp_path: Path) -> None:
    """The scenario names the scheduler; with it, replications in processes of their own give the same as in one."""
    policy = write_policy(tmp_path / "mine", "small")
    file = str(toy(("scheduler: chunked", "scheduler: small")))
    printed = []
    for workers in ("1", "2"):
        words = ["run", file, "--import", str(policy), "--json-summary", "--replications", "2", "--workers", workers]
        done = subprocess.run(
            [sys.executable, "-m", "simqueue", *words], check=False, capture_output=True, encoding="utf-8"
        )
        assert (done.returncode, done.stderr) == (0, "")
        printed.append(json.loads(done.stdout))
    assert printed[0] == printed[1]
    assert printed[0]["scenario"]["policies"]["vllm"]["scheduler"] == "small"


@pytest.mark.parametrize("name", ["calm"])
def test_it_is_listed_and_in_the_schema(capsys: Capture, tmp_path: Path, name: str) -> None:
    """Lists and the schema show schedulers that a file registers."""
    policy = str(write_policy(tmp_path / "mine", name))
    assert run_command(["list", "policies", "--import", policy, "--json"]) == 0
    assert name in [row["scheduler"] for row in json.loads(capsys.readouterr().out)]
    assert run_command(["schema", "--import", policy]) == 0
    assert f'"const": "{name}"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("gone.py", None, "gone.py: there is no such file"),
        ("policy.txt", "", "policy.txt: must be a Python file whose name can be imported, such as my_policy.py"),
        ("my-policy.py", "", "my-policy.py: must be a Python file whose name can be imported, such as my_policy.py"),
        ("statistics.py", "", "statistics.py: there is another module 'statistics'"),
        ("fails_one.py", "x = 1\nx.y()\n", "fails_one.py:2: AttributeError: 'int' object has no attribute 'y'"),
        ("fails_two.py", "def f(:\n", "fails_two.py:1: SyntaxError: "),
        ("fails_three.py", "raise SystemExit(0)\n", "fails_three.py:1: SystemExit: 0"),
        (
            "fails_four.py",
            "from simqueue.schedulers import scheduler\nscheduler('bad name!')\n",
            "scheduler 'bad name!': must",
        ),
    ],
)
def test_what_cannot_be_imported_is_bad_input(
    capsys: Capture, tmp_path: Path, file: str, content: str | None, words: str
) -> None:
    """One line with the file, its line if it was run, and what is wrong; exit code 2."""
    if content is not None:
        (tmp_path / file).write_text(content, encoding="utf-8")
    assert run_command(["list", "policies", "--import", str(tmp_path / file)]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ")
    assert words in line
    assert printed.out == ""
