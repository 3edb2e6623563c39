"""The report command, with the repository's measurements."""

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
    """The report shows all figures that are drawn, and no others."""
    folder, text = report
    drawn = {f"fidelity/{file.name}" for file in (folder / "fidelity").iterdir()}
    shown = {line.rpartition("](")[2].rstrip(")") for line in text.splitlines() if line.startswith("![")}
    assert drawn == shown
    assert len(drawn) == 6


def test_the_committed_report_is_the_current_one(report: tuple[Path, str]) -> None:
    """The report in the repository is what its command writes; run `make fidelity` if it is not."""
    assert (ROOT / "reports" / "fidelity.md").read_text() == report[1]


def test_every_row_is_used_or_left_out_with_a_reason(found: Findings) -> None:
    """Each row of the tables of steps and served runs is either compared or left out."""
    used = {
        "step_times.csv": sum(len(one.cases) for one in [*found.steps, *found.parts]),
        "served_ttft_tpot_hopper.csv": sum(len(one.rows) for one in found.served)
        + sum(len(one.cases) for one in found.experts),
    }
    for table, rows in used.items():
        with (ROOT / "data" / "groundtruth" / table).open(newline="") as lines:
            total = sum(1 for _ in csv.DictReader(lines))
        assert rows + sum(group.rows for group in found.left_out if group.table == table) == total


def test_dense_models_without_a_fit_are_compared_with_the_nearest_preset(found: Findings) -> None:
    """Each group that is compared with the nearest preset, as the table of unused rows says, has as many rows there."""
    said = sorted(group.rows for group in found.left_out if "nearest preset" in group.why)
    assert said == sorted(len(one.rows) for one in found.beyond)


@pytest.mark.parametrize("study", ["fidelity", "module08"])
def test_a_closed_pipe_is_no_traceback(study: str) -> None:
    """If the reader of the output ends early, as `head` does, the command prints no traceback."""
    command = [sys.executable, "-m", f"studies.{study}", "--help"]
    environment = os.environ | {"PYTHONSAFEPATH": "", "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_missing_measurements_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its data the command ends with exit code 2 and a line that names the folder and the option."""
    assert main(["--data", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'none'} does not exist: run this from the repository's folder, or give --data\n"
    )
    assert main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    missing = tmp_path / "step_times.csv"
    assert capsys.readouterr().err == f"error: step_times.csv: no such file (looked for {missing})\n"
    missing.write_text("gpu,ms\nH100,1\n", encoding="utf-8")
    assert main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: step_times.csv:2: column 'source' is missing\n"
