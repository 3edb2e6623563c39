"""``simqueue sweep``: what it prints and writes, its exit codes, and what a dry run says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ..sweeps.toys import RATE, SEATS, toy

Command = Callable[..., Any]


@pytest.fixture
def here(scenario_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a scenario the current one, and the screen wide enough for a table."""
    scenario_file(toy(), "toy.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_it_prints_means_and_writes_the_table(command: Command) -> None:
    """One row per cell and policy, rates with 6 digits, notes, and the files; nothing is run a second time."""
    arguments = ("sweep", "toy.yaml", "--grid", f"{RATE}=4:5:4", "--grid", f"{SEATS}=2,2.0", "--replications", "2")
    shown = command(*arguments, "--workers", "1", "--figure", "f.png")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("note: 4 cells are duplicates of others and left out\n")
    assert "4.33333  " in shown.out
    assert "means over the replications of each cell" in shown.out
    assert shown.out.endswith("written: results/toy-sweep/rows.parquet\nwritten: f.png\n")
    assert len(pd.read_parquet("results/toy-sweep/rows.parquet")) == 4 * 2 * 2
    before = Path("results/toy-sweep/rows.parquet").read_bytes()
    again = command(*arguments, "--dry-run")
    assert "cells: 4, of which 4 are stored in results/toy-sweep and 0 are to be run" in again.out
    assert "time: about 0.1 s" in again.out
    assert command(*arguments, "--workers", "1").code == 0
    assert Path("results/toy-sweep/rows.parquet").read_bytes() == before


@pytest.mark.usefixtures("here")
def test_failures_are_named_at_the_end(command: Command) -> None:
    """The first ones with their values and errors, and how many there are; the exit code is 1."""
    values = ",".join(str(-number) for number in range(1, 13))
    shown = command("sweep", "toy.yaml", "--grid", f"{RATE}=8,{values}", "--workers", "1", "--out", "o")
    lines = shown.err.splitlines()
    assert shown.code == 1
    assert lines[0] == f"error: cell 1 ({RATE}=-1): {RATE}=-1: must be > 0"
    assert lines[-1] == "error: 12 of 13 cells failed; 2 more are in the table"
    assert len(lines) == 11
    assert " 8 " in shown.out


def test_a_dry_run_writes_nothing(here: Path, command: Command) -> None:
    """It says what the cells are, how many rows come of them, which fail, and how long it takes, on what grounds."""
    design = {"scenario": "toy.yaml", "grid": {RATE: "4:32:8", SEATS: [2, 4, -1]}, "set": {"replications": 3}}
    (here / "design.yaml").write_text(json.dumps(design))
    before = sorted(path.name for path in here.iterdir())
    shown = command("sweep", "design.yaml", "--dry-run", "--out", "new")
    assert shown.code == 0
    assert "and 16 more cells" in shown.out
    assert "cells: 24, of which 0 are stored in new, 16 are to be run and 8 fail\nrows: 104\n" in shown.out
    assert "cell 2 fails: policies.a.max_num_seqs = -1: must be >= 1; policies.b.max_num_seqs" in shown.out
    assert "s with 2 workers (3 cells played once each)" in shown.out.replace("with 1 workers", "with 2 workers")
    assert sorted(path.name for path in here.iterdir()) == before
    found = json.loads(command("sweep", "design.yaml", "--dry-run", "--json").out)
    assert (found["cells"], found["missing"], found["rows"], len(found["errors"])) == (24, 16, 104, 8)


@pytest.mark.usefixtures("here")
def test_the_counts_of_a_dry_run_are_all_cells(command: Command) -> None:
    """Cells that are the same run are counted, and if none can be run, that is said."""
    shown = command("sweep", "toy.yaml", "--grid", "name=x,y", "--dry-run", "--out", "o")
    assert "cells: 2, of which 0 are stored in o, 1 are to be run and 1 are the same run as another" in shown.out
    shown = command("sweep", "toy.yaml", "--grid", f"{RATE}=-1,-2", "--dry-run", "--out", "o")
    assert "0 are to be run and 2 fail\nrows: 2\n" in shown.out
    assert "time: not known: no cell can be run" in shown.out


@pytest.mark.usefixtures("here")
def test_values_on_the_screen_can_be_told_apart(command: Command) -> None:
    """They have all digits if the first six are the same."""
    shown = command("sweep", "toy.yaml", "--grid", f"{RATE}=4.00000001,4.00000002", "--dry-run", "--out", "o")
    assert "4.00000001" in shown.out


def test_json_is_one_object(here: Path, command: Command) -> None:
    """Rows, failures and what they are of; undefined values are null."""
    (here / "cells.csv").write_text(f"seed,{RATE}\n1,4\n2,-1\n")
    shown = command("sweep", "toy.yaml", "--design", "cells.csv", "--json", "--workers", "1", "--out", "o")
    found = json.loads(shown.out)
    assert shown.code == 1
    assert [row["cell"] for row in found["rows"]] == [0, 0, 1]
    assert found["rows"][2]["mean_ttft_ms"] is None
    assert found["failures"] == [{"cell": 1, "seed": 2, RATE: -1.0, "error": f"{RATE}=-1: must be > 0"}]
    assert found["design"] == {"cells": {"seed": [1, 2], RATE: [4, -1]}}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--grid", f"{RATE}="], f"--grid {RATE}=: has no values"),
        ([], "the sweep has no axes: give --grid"),
        (["--grid", "workload.rate=1,2"], "--grid workload.rate=1,2: unknown key 'rate'"),
        (["--grid", "seed=1,2", "--metric", "ttft"], "--metric: unknown metric 'ttft'"),
        (["--grid", "seed=1,2", "--figure", "f.pdf"], "--figure: f.pdf must end in .png or .svg"),
        (["--draw", "seed=1:20"], "points: must be given"),
        (["--grid", "seed=1,2", "--out", "."], ".: contains files and no sweep, such as toy.yaml"),
        (["--design", "none.csv"], "none.csv: "),
    ],
)
def test_bad_input_is_one_line(command: Command, arguments: list[str], says: str) -> None:
    """The exit code is 2, and nothing is run."""
    shown = command("sweep", "toy.yaml", *arguments)
    assert (shown.code, shown.out) == (2, "")
    (line,) = shown.err.splitlines()
    assert says in line
