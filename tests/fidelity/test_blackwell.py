"""Served runs on B200: which rows are used, and limits on the errors of presets of another GPU and of its own."""

import csv
import gzip

import numpy as np
import pytest

from simqueue.datafiles.csvtable import read_table
from simqueue.steptime import load_preset
from studies import ROOT
from studies.fidelity.blackwell import BLACKWELL_FILE, BLACKWELL_RECIPES, reason_not_used
from studies.fidelity.report import Findings

FILE = ROOT / "data" / "groundtruth" / BLACKWELL_FILE


def test_every_row_is_used_or_left_out_with_a_reason(found: Findings) -> None:
    """Rows with a reason are those that the report leaves out; the others are fitted or compared."""
    with gzip.open(FILE, "rt", newline="") as lines:
        total = sum(1 for _ in csv.DictReader(lines))
    used = sum(1 for row in read_table(FILE, FILE.name).rows() if reason_not_used(row) is None)
    assert used + sum(group.rows for group in found.left_out if group.table == BLACKWELL_FILE) == total
    compared = {one.runs: len(one.tpot) for one in found.blackwell}
    assert used >= sum(compared.values())


def test_a_gpu_that_was_left_out(found: Findings) -> None:
    """Presets of the H200 predict TPOT on B200 within 9 % on average, and within 7 % at the median."""
    for one in found.blackwell:
        assert np.abs(one.tpot).mean() <= 9
        assert np.median(np.abs(one.tpot)) <= 7


@pytest.mark.parametrize("recipe", BLACKWELL_RECIPES, ids=lambda recipe: recipe.name)
def test_presets_of_b200_on_rows_held_out(recipe) -> None:  # type: ignore[no-untyped-def]
    """By its file, the mean error of a preset is at most 10 % on rows that are left out one in five."""
    errors = load_preset(recipe.name).card.errors
    assert [error.mape_percent <= 10 for error in errors if error.data == "5-fold held out"] == [True]
