"""Power of saturated servers: which rows are used, and limits on the errors."""

import csv
import gzip

import numpy as np
import pytest

from simqueue.hardware import load_gpu
from studies import ROOT
from studies.fidelity.report import Findings


def test_every_row_is_used_or_left_out_with_a_reason(found: Findings) -> None:
    """Each row of the table has its power compared or is left out; times between tokens are of the former."""
    with gzip.open(ROOT / "data" / "groundtruth" / "mlenergy_v3.csv.gz", "rt", newline="") as lines:
        total = sum(1 for _ in csv.DictReader(lines))
    left_out = sum(group.rows for group in found.left_out if group.table == "mlenergy_v3.csv.gz")
    used = sum(len(one.cases) for one in found.power)
    assert used + left_out == total
    assert sum(len(one.cases) for one in found.tokens) < used


@pytest.mark.parametrize("place", [0, 1])
def test_power_of_models_left_out(found: Findings, place: int) -> None:
    """The mean error is at most 13 % for models that the fit has not seen."""
    assert np.abs(found.power[place].left_out_errors).mean() <= 13


def test_the_power_of_the_package_is_the_fitted_one(found: Findings) -> None:
    """The files of the GPUs have what the fit gives, within rounding."""
    for one in found.power:
        packaged = load_gpu(one.gpu).power
        assert packaged is not None
        given = (packaged.running_w, packaged.j_per_byte, packaged.j_per_flop, packaged.limit_w)
        fitted = (one.power.running_w, one.power.j_per_byte, one.power.j_per_flop, one.power.limit_w)
        assert given == pytest.approx(fitted, rel=0.01)
