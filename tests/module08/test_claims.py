"""The claims: results of the module's own program, verdicts from intervals, and the command of the bench."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from studies.module08 import measure
from studies.module08.__main__ import main
from studies.module08.claims import Claim, Trial, _against, _all, _within
from studies.module08.recorded import read
from studies.module08.traffic import CLOCKS, RUNS, own_figures

NAMES = {
    "arrivals in ms": "arrivals_in_milliseconds",
    "as written (s read as ms)": "arrival_seconds_read_as_milliseconds",
}


def test_the_results_of_its_own_program_are_the_reference(reference: dict[str, Any]) -> None:
    """Each metric that the report shows for the module's own program is that of the reference, with both clocks."""
    found = own_figures()
    assert set(found) == set(CLOCKS) == set(NAMES)
    for clock, runs in found.items():
        assert set(runs) == set(RUNS)
        for name, metrics in runs.items():
            assert metrics == pytest.approx(reference[NAMES[clock]][name]["metrics"], rel=1e-9), (clock, name)


@pytest.mark.parametrize(
    ("found", "said"),
    [((0.5, 0.1), "yes"), ((0.95, 0.1), "unclear"), ((1.2, 0.1), "no"), ((0.5, None), "yes"), (None, "unclear")],
)
def test_an_interval_that_contains_the_limit_is_unclear(found: Any, said: str) -> None:
    """The mean and its half-width are below 1, above 1, or on both sides."""
    assert _within(found, 0, 1) == said
    assert _within(None if found is None else (found[0] + 1, found[1]), 1, math.inf) == {
        "yes": "yes", "unclear": "yes" if found else "unclear", "no": "yes",
    }[said]  # fmt: skip


def test_a_claim_needs_all_of_its_parts() -> None:
    """A claim does not hold if one part does not, and is unclear if one part is."""
    assert _all("yes", "unclear", "no") == "no"
    assert _all("yes", "unclear") == "unclear"
    assert _all("yes", "yes") == "yes"


def test_the_command_measures_prints_and_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With four short answers on two slots: the table, the figures, the measurements and the steps."""
    monkeypatch.setattr(measure, "module_lengths", lambda: [3, 5, 4, 2])
    assert main(["bench", "--batch-size", "2", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines() if line.split()[:1] in (["pad_to_max"], ["continuous"])]
    assert [row[:4] for row in rows] == [["pad_to_max", "2", "14", "11"], ["continuous", "2", "14", "10"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bench.json", "slots-2.png", "slots-2.svg", "steps.csv",
    ]  # fmt: skip
    first = read(tmp_path / "bench.json").runs[0]
    assert (first.policy, first.generated, first.calls) == ("pad_to_max", 14, 11)
    assert json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["machine"].startswith("torch ")


@pytest.mark.parametrize(("clock", "over"), [("arrivals in ms", True), ("as written (s read as ms)", False)])
def test_the_verdict_on_the_tail_of_tpot_names_the_runs_that_contradict_it(
    clock: str, over: bool, reference: dict[str, Any]
) -> None:
    """The verdict on claim 5 names the runs of the module's own program above 2.5, and no others."""
    own = reference[NAMES[clock]]["continuous"]["metrics"]
    found = own["tpot_p95"] / own["tpot_p50"]
    assert (found > 2.5) == over
    said = _against(own_figures())
    assert (f"{clock}: {found:.3g}" in said) == over
    trials = [Trial("c", 1.0, 0.1, ("1",), "yes")]
    assert Claim(5, "t", "o", ("x",), said, trials).verdict == f"holds at every load tested; not in {said}"
