"""The report command writes what it says, from the repository's data alone."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from studies.fidelity.__main__ import main
from studies.fidelity.report import Findings, write_report

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(found: Findings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a freshly written report and its text."""
    folder = tmp_path_factory.mktemp("reports")
    files = write_report(found, folder)
    assert all(file.stat().st_size > 0 for file in files)
    return folder, (folder / "fidelity.md").read_text()


def test_every_figure_is_drawn_and_shown(report: tuple[Path, str]) -> None:
    """Each figure that the report shows was drawn, and each that was drawn is shown."""
    folder, text = report
    drawn = {f"fidelity/{file.name}" for file in (folder / "fidelity").iterdir()}
    shown = {line.rpartition("](")[2].rstrip(")") for line in text.splitlines() if line.startswith("![")}
    assert drawn == shown
    assert len(drawn) == 6


def test_the_committed_report_is_the_current_one(report: tuple[Path, str]) -> None:
    """The report in the repository is what its command writes now: run `make fidelity` if it is not."""
    assert (ROOT / "reports" / "fidelity.md").read_text() == report[1]


def test_every_row_is_used_or_left_out_with_a_reason(found: Findings) -> None:
    """The rows that were compared and those left out are, together, all rows of the tables of steps and served runs."""
    used = {
        "step_times.csv": sum(len(one.cases) for one in [*found.steps, *found.parts]),
        "served_ttft_tpot_hopper.csv": sum(len(one.rows) for one in found.served),
    }
    for table, rows in used.items():
        with (ROOT / "data" / "groundtruth" / table).open(newline="") as lines:
            total = sum(1 for _ in csv.DictReader(lines))
        assert rows + sum(group.rows for group in found.left_out if group.table == table) == total


def test_dense_models_without_a_fit_are_put_to_a_preset(found: Findings) -> None:
    """Each group that is said to be put to the nearest preset is, with as many rows."""
    said = sorted(group.rows for group in found.left_out if "nearest preset" in group.why)
    assert said == sorted(len(one.rows) for one in found.beyond)


@pytest.mark.parametrize("study", ["fidelity", "module08"])
def test_a_closed_pipe_is_no_traceback(study: str) -> None:
    """A reader that goes away, as `head` does, is not answered with a traceback."""
    shell = f"{sys.executable} -m studies.{study} --help | {sys.executable} -c pass"
    done = subprocess.run(  # noqa: S602 - a pipe needs a shell
        shell,
        shell=True,
        check=False,
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env=os.environ | {"PYTHONSAFEPATH": ""},
    )
    assert done.stderr == ""


def test_missing_measurements_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its data the command ends with exit code 2 and a line that names the folder and the option."""
    assert main(["--data", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'none'} does not exist: run this from the repository's folder, or give --data\n"
    )
    assert main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: step_times.csv: no such file\n"
