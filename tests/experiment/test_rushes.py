"""Traffic that exceeds the capacity for a part of the time: the share is in the table, in JSON and in a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.report.comparison import comparison
from simqueue.results.stored import read_result
from tests.statistics.test_rush import ABOVE

SERVERS = {
    "step_time": {"kind": "constant", "seconds": 0.1},
    "kv_cache": {"blocks": 1_000_000},
    "policies": {
        "day": {"scheduler": "continuous", "max_num_seqs": 4},
        "night": {"scheduler": "continuous", "max_num_seqs": 8},
    },
}
"""With outputs of 4 tokens, 10 and 20 requests a second."""
LENGTHS = {
    "prompt_tokens": {"distribution": "constant", "value": 10},
    "output_tokens": {"distribution": "constant", "value": 4},
}


def played(arrivals: dict[str, Any], number: int = 1500, **more: Any) -> Any:
    """Return a run with this arrival process."""
    workload = {"arrivals": arrivals, "num_requests": number, **LENGTHS}
    return sq.run({**SERVERS, "workload": workload, **more}, check=False)


@pytest.fixture(scope="module")
def result() -> Any:
    """Return a day with a mean load of 0.75 of the smaller server, and a peak of 1.35."""
    return played({"process": "sinusoid", "rate_rps": 7.5, "amplitude": 0.8, "period_s": 200.0})


def test_a_day_has_its_share_in_table_json_and_figure(result: Any, tmp_path: Path) -> None:
    """The share is within 0.05 of the sine; the larger server has none; a stored result has it, too."""
    rows = json.loads(result.to_json(requests=False))["summary"]
    assert [row["overloaded_share"] for row in rows] == [pytest.approx(ABOVE, abs=0.05), 0.0]
    assert [row["capacity_rps"] for row in rows] == [pytest.approx(10.0), pytest.approx(20.0)]
    shown = {cells.line.label: cells.texts for cells in comparison(result).sections["Load and run"]}
    assert shown["time overloaded"] == (f"{100 * rows[0]['overloaded_share']:.1f}%", "0.0%")
    assert any(line.startswith("day: more requests arrive than can be served in 3") for line in result.warnings)
    result.save(tmp_path / "r", figures=False)
    for one in (result, read_result(tmp_path / "r")):
        shaded = [len(ax.patches) for ax in one.plot("arrivals").axes]
        assert shaded[0] > shaded[1]


def test_traffic_without_a_peak_has_no_column() -> None:
    """Poisson traffic at a load of 0.8, and a day below the capacity, have the columns of every summary."""
    for arrivals in (
        {"process": "poisson", "rate_rps": 8.0},
        {"process": "sinusoid", "rate_rps": 5.0, "amplitude": 0.8, "period_s": 100.0},
    ):
        found = played(arrivals, 300)
        assert not {"overloaded_share", "capacity_rps"} & set(found.summary_rows[0])


def test_a_recorded_day_is_judged_by_its_arrivals(result: Any, tmp_path: Path) -> None:
    """The same requests as a trace have a share, too; in replications of the process it has no interval."""
    result.export_trace(tmp_path / "day.jsonl")
    trace = {"format": "jsonl", "path": str(tmp_path / "day.jsonl"), "origin": "file"}
    again = sq.run({**SERVERS, "workload": {"trace": trace}}, check=False)
    assert again.summary_rows[0]["overloaded_share"] == pytest.approx(ABOVE, abs=0.1)
    arrivals = {
        "process": "piecewise",
        "repeat": True,
        "pieces": [{"for_s": 6, "rate_rps": 5}, {"for_s": 2, "rate_rps": 15}],
    }
    several = played(arrivals, 120, replications=3).summary_rows[0]
    assert several["overloaded_share"] == pytest.approx(0.25, abs=0.07)
    assert "ci_low_overloaded_share" not in several
