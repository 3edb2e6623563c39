"""Errors on rows that presets were not fitted to: held out, and outside of their data."""

from pathlib import Path

import numpy as np
import pytest

from simqueue.steptime import load_preset, preset_names
from simqueue.steptime.model_error import measured_errors
from studies.fidelity.beyond import Beyond, as_yaml, medians
from studies.fidelity.report import Findings

PACKAGE = Path(__file__).parents[2] / "simqueue" / "steptime"
DENSE = ("vllm-h100", "vllm-h100-llama-8b", "vllm-h100-llama-70b", "vllm-h100-qwen3-32b", "vllm-h200", "sglang-h100")


@pytest.mark.parametrize("name", DENSE)
def test_medians_of_rows_held_out(name: str) -> None:
    """At most 5 % for TPOT and 12 % for TTFT, with dense models."""
    errors = {one.data: one.median_percent for one in load_preset(name).card.errors}
    assert errors["5-fold held out"] is not None
    assert errors["5-fold held out"] <= 5
    assert (errors.get("5-fold held out, TTFT") or 0.0) <= 12


def test_what_runs_state_is_what_the_study_finds(found: Findings) -> None:
    """The file in the package is current; `python -m studies.fidelity --beyond simqueue/steptime/beyond.yaml`."""
    assert (PACKAGE / "beyond.yaml").read_text(encoding="utf-8") == as_yaml(found.foreign)
    assert measured_errors() == {regime: round(median, 1) for regime, (median, _) in medians(found.foreign).items()}


def test_a_regime_is_pooled_over_its_rows() -> None:
    """The median is that of all rows, not the mean of medians."""
    one, other = np.array([1.0, -2.0, 3.0]), np.array([-40.0])
    found = [Beyond("another GPU", "a", one), Beyond("another GPU", "b", other), Beyond("another model", "c", one)]
    assert medians(found) == {"another GPU": (2.5, 4), "another model": (2.0, 3)}


def test_every_preset_of_a_server_states_an_error_of_rows_held_out() -> None:
    """Without it a run within the range would have to state the error of the fit."""
    for name in preset_names():
        card = load_preset(name).card
        if name != "ideal":
            assert any("held out" in one.data for one in card.errors), name
