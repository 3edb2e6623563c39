"""Tables that are streamed to Parquet while running are those that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simqueue.errors import InputError
from simqueue.experiment import run
from simqueue.results.streaming import streamed_to
from simqueue.simulation import RunOptions, Simulation, columns

from ..helpers.recordings import differences
from .test_whole_runs import CHUNKED, STEP_TIME, lognormal_requests
from .three_ways import Case, Pool

CASE = Case(lognormal_requests(600, 8.6), *CHUNKED, Pool("paged", 900, 16), STEP_TIME)
SCENARIO = {
    "name": "small",
    "step_time": {"kind": "constant", "seconds": 0.01},
    "kv_cache": {"blocks": 100},
    "workload": {
        "requests": [{"id": str(i), "arrival_s": i / 100, "prompt_tokens": 9, "output_tokens": 5} for i in range(30)]
    },
    "policies": {"one": {"scheduler": "chunked"}, "two": {"scheduler": "static"}},
}


@pytest.mark.parametrize("rows", [16, 1000, 10**9])
def test_streamed_tables_hold_the_same_bytes(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests, steps and gaps read back from their files are those of a run that keeps them, whatever the chunks."""
    monkeypatch.setattr(columns, "STREAMED_ROWS", rows)
    kept = CASE.play("fast")
    options = RunOptions()
    streamed = Simulation(list(CASE.requests), CASE.policy(), STEP_TIME, options, sinks=streamed_to(tmp_path)).run()
    assert differences(kept, streamed) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gaps.parquet", "requests.parquet", "steps.parquet"]


def test_streamed_files_do_not_depend_on_folding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folded or step by step, the files are the same to a byte: they are divided by rows, not by when rows came."""
    monkeypatch.setattr(columns, "STREAMED_ROWS", 500)
    for way in ("fast", "stepped"):
        sinks = streamed_to(tmp_path / way)
        options = RunOptions(fast=way == "fast")
        Simulation(list(CASE.requests), CASE.policy(), STEP_TIME, options, sinks=sinks).run()
    for name in ("gaps.parquet", "requests.parquet", "steps.parquet"):
        assert (tmp_path / "fast" / name).read_bytes() == (tmp_path / "stepped" / name).read_bytes(), name


def test_rows_leave_memory_while_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a streamed table never grows past one chunk and the rows that wait for it."""
    monkeypatch.setattr(columns, "STREAMED_ROWS", columns.ROWS_AT_ONCE)
    table = columns.Columns(number="q")
    table.stream_to(streamed_to(tmp_path)("numbers"))
    kept = []
    for number in range(5 * columns.ROWS_AT_ONCE + 7):
        table.append((number,))
        kept.append(len(table))
    assert max(kept) < columns.ROWS_AT_ONCE
    np.testing.assert_array_equal(table.arrays()["number"], np.arange(5 * columns.ROWS_AT_ONCE + 7))


RANDOM = SCENARIO | {
    "workload": {
        "num_requests": 9000,
        "arrivals": {"process": "poisson", "rate_rps": 40},
        "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 30},
        "output_tokens": {"distribution": "geometric", "mean": 4},
        "classes": {"a": {"weight": 7}, "b": {"weight": 3, "priority": 1}},
        "timeout_s": 2.0,
    }
}


@pytest.mark.parametrize("scenario", [SCENARIO, RANDOM])
def test_a_streamed_scenario_has_the_same_summary(scenario: dict[str, Any], tmp_path: Path) -> None:
    """Each policy's tables go to a folder of its name, and the result says the same as one that keeps them.

    Its random requests are made while they are played, and not kept.
    """
    kept, streamed = run(scenario), run(scenario, stream_to=tmp_path)
    assert streamed.to_json() == kept.to_json()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "simqueue-stream.json", "two"]


def test_several_replications_are_not_streamed(tmp_path: Path) -> None:
    """Replications share no folder: asking for both is refused in one line."""
    with pytest.raises(InputError, match="needs a single replication"):
        run(RANDOM | {"replications": 2}, stream_to=tmp_path)


def test_tables_without_rows_are_written_and_replace_those_of_an_earlier_run(tmp_path: Path) -> None:
    """A run that serves nothing has empty tables, in a new folder and in the folder of a run that served requests."""
    nothing = SCENARIO | {"max_model_len": 1}
    run(SCENARIO, stream_to=tmp_path / "used")
    kept = run(nothing)
    for folder in ("new", "used"):
        streamed = run(nothing, stream_to=tmp_path / folder)
        assert streamed.to_json() == kept.to_json()
        recording = streamed.runs[0].recording
        assert [len(recording.steps[name]) for name in recording.steps] == [0] * len(kept.runs[0].recording.steps)
        assert recording.gaps["gap_s"].dtype == np.float64
        assert streamed.steps.equals(kept.steps)
