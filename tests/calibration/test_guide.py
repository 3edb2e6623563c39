"""The guide's commands run and its tables are read."""

import re
import shlex
from pathlib import Path

import pytest

from simqueue.calibration.rows import KNOWN
from simqueue.calibration.served_rows import LOG, MEANS
from simqueue.cli import run_command
from simqueue.steptime import Coefficients

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "guides" / "hardware.md").read_text()
REFERENCE = (DOCS / "reference" / "steptime.md").read_text()
COMMANDS = re.findall(r"^\$ simqueue (explain .*)$", GUIDE + REFERENCE, re.MULTILINE)
TABLES = re.findall(r"```csv\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("command", COMMANDS)
def test_explained_steps_run(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each `simqueue explain` of the documentation runs without a warning."""
    assert run_command(shlex.split(command)) == 0
    assert "warning" not in capsys.readouterr().out


def test_tables_have_columns_that_are_known() -> None:
    """Each table of the guide has the columns of one kind of measurement, and rows of that length."""
    for table, known in zip(TABLES, (KNOWN, KNOWN, MEANS, LOG), strict=True):
        header, *rows = (line.split(",") for line in table.splitlines())
        assert set(header) <= set(known)
        assert all(len(row) == len(header) for row in rows)


def test_every_value_of_a_preset_is_explained() -> None:
    """The reference has each value of the calibrated form in its formula and in its table."""
    formula, table = REFERENCE.split("| value | unit | meaning |")
    for name in Coefficients.model_fields:
        assert name in formula
        assert f"`{name}`" in table
