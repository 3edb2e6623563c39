"""Fixtures for all tests; every run verifies its invariants."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from simqueue.cli import run_command
from simqueue.execution import local
from simqueue.experiment.runner import CHECK_SWITCH
from simqueue.results.result import Result

from .helpers.both_ways import play_both_ways
from .helpers.profiles import register_profiles

os.environ[CHECK_SWITCH] = "1"
# tests run side by side already: only those that ask for worker processes start them
local._WORTH_STARTING_S = math.inf

# studies/ and benchmarks/ are not installed. At the end of the path, so that simqueue is the installed package.
sys.path.append(str(Path(__file__).parents[1]))

register_profiles()


_TOGETHER = (
    "tests/fidelity/",
    "tests/module08/test_report.py",
    "tests/docs/test_tutorial.py",
    "tests/execution/test_cluster.py",
)
"""Tests that share what takes long to make, or that need their order: all of a folder or file run in one process."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return what gives tests to processes. Groups of pytest-xdist itself have no effect with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        """Gives each test to a process that has time, and tests that belong together to the same one."""

        def _split_scope(self, nodeid: str) -> str:
            return next((place for place in _TOGETHER if nodeid.startswith(place)), nodeid)

    return Together(config, log)


@pytest.fixture
def play() -> Callable[[Mapping[str, Any]], Result]:
    """Return a run that folds equal steps and plans each of them: both must give the same tables, to the last bit."""
    return play_both_ways


@pytest.fixture
def by_id() -> Callable[..., pd.DataFrame]:
    """Return a view of one policy's requests by their ids."""

    def view(result: Result, policy: str | None = None) -> pd.DataFrame:
        requests = result.requests
        if policy is not None:
            requests = requests[requests["policy"] == policy]
        assert requests["request_id"].is_unique, "name the policy"
        return requests.set_index("request_id")

    return view


@pytest.fixture
def summary_of() -> Callable[..., dict[str, Any]]:
    """Return a view of one policy's summary row: plain values, None where undefined."""

    def view(result: Result, policy: str | None = None) -> dict[str, Any]:
        (row,) = (row for row in result.summary_rows if policy in (None, row["policy"]))
        return row

    return view


class Shown(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Shown]:
    """Return the command line, called in this process as ``simqueue ARGUMENTS...``."""

    def called(*arguments: str | Path) -> Shown:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        return Shown(code, *capsys.readouterr())

    return called


@pytest.fixture
def scenario_file(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of scenario files: text as it is, a mapping as JSON, which is YAML too."""

    def written(content: str | Mapping[str, Any], name: str = "case.yaml") -> Path:
        file = tmp_path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
        return file

    return written
