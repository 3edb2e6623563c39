"""The report command writes what it says, from the repository's data alone."""

from pathlib import Path

import pytest

from simqueue.fidelity.report import Findings, write_report

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
    """The report in the repository is what its command writes now: run `python -m simqueue.fidelity` if it is not."""
    assert (ROOT / "reports" / "fidelity.md").read_text() == report[1]
