"""The notebooks: their cells run one after the other, and what they show was made by a run of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from simqueue.experiment.runner import CHECK_SWITCH

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells with code."""
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


def code_of(cell: dict[str, Any]) -> str:
    """Return the code of a cell without commands to the notebook itself."""
    return "".join(line for line in cell["source"] if not line.startswith("%"))


def test_there_is_one() -> None:
    """At least."""
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells, in order, in an empty folder; nothing is left there. Without checks of each step: they take long."""
    monkeypatch.delenv(CHECK_SWITCH)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    with mpl.rc_context({"backend": "Agg"}):
        for number, cell in enumerate(code_cells(path)):
            exec(compile(code_of(cell), f"{path.name}: cell {number}", "exec"), names)  # noqa: S102 - our own notebook
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_shows_what_a_run_gave(path: Path) -> None:
    """Cells were run from the first to the last one, each has its output, and none an error or a warning."""
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert set(kinds) <= {"execute_result", "stream", "display_data"}
    assert not [output for cell in cells for output in cell["outputs"] if output.get("name") == "stderr"]
    assert all(cell["outputs"] for cell in cells)
    pictures = [one for cell in cells for one in cell["outputs"] if "image/png" in one.get("data", {})]
    drawn = [cell for cell in cells if ".plot(" in code_of(cell)]
    assert len(pictures) == len(drawn) > 0
