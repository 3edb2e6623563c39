"""Results on disk."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from simqueue.errors import InputError, RunError
from simqueue.results import store
from simqueue.results.policyrun import PolicyRun
from simqueue.results.result import Result
from simqueue.results.stored import read_result

TABLES = [
    "itl.parquet",
    "requests.parquet",
    "scenario.json",
    "simqueue-result.json",
    "steps.parquet",
    "summary.csv",
    "summary.json",
]


def result_of(recording: Any, **scenario: Any) -> Result:
    """Make a result of one run."""
    return Result({"name": "toy"} | scenario, "0.1.0", 7, [PolicyRun("p", 0, recording)], slo={"ttft_ms": 500})


def names(folder: Path) -> list[str]:
    """List everything below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def contents(folder: Path) -> dict[str, bytes]:
    """Read everything below a folder."""
    return {name: (folder / name).read_bytes() for name in names(folder)}


def test_everything_is_written_and_named(preempted_pair: Any, tmp_path: Path) -> None:
    """Tables, summary, scenario and the figure in two forms are there, and are what save returns."""
    written = result_of(preempted_pair).save(tmp_path / "deep" / "out")
    figures = [f"figures/latency_cdfs.{kind}" for kind in ("png", "svg")]
    assert names(tmp_path / "deep" / "out") == sorted([*figures, *TABLES])
    assert sorted(path.relative_to(tmp_path / "deep" / "out").as_posix() for path in written) == sorted(
        {*figures, *TABLES} - {store.MARKER}
    )
    assert all(path.stat().st_size for path in written)


def test_tables_come_back_as_they_were(preempted_pair: Any, tmp_path: Path) -> None:
    """Parquet and CSV hold the values of the tables, the JSON files those of the result."""
    result = result_of(preempted_pair)
    result.save(tmp_path / "out", figures=False)
    assert names(tmp_path / "out") == TABLES
    for name, table in (("requests", result.requests), ("steps", result.steps)):
        back = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        pd.testing.assert_frame_equal(back, table, check_dtype=False)
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert summary.columns.tolist() == result.summary.columns.tolist()
    assert summary["mean_tpot_ms"].tolist() == result.summary["mean_tpot_ms"].tolist()
    summary_json = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary_json == json.loads(result.to_json(requests=False)) | {"slo": {"ttft_ms": 500}, "class_slo": {}}
    assert json.loads((tmp_path / "out" / "scenario.json").read_text()) == {"name": "toy"}


def test_latency_limits_come_back(preempted_pair: Any, tmp_path: Path) -> None:
    """A result read from its folder has the limits of the run, wherever the scenario had them."""
    runs = [PolicyRun("p", 0, preempted_pair)]
    class_slo = {"chat": {"tpot_ms": 20.0}}
    Result({"name": "toy"}, "0.1.0", 7, runs, slo={"ttft_ms": 100.0}, class_slo=class_slo).save(
        tmp_path / "out", figures=False
    )
    back = read_result(tmp_path / "out")
    assert back.slo == {"ttft_ms": 100.0}
    assert back.class_slo == class_slo


def test_a_result_saved_without_its_limits_has_those_of_the_scenario(preempted_pair: Any, tmp_path: Path) -> None:
    """Earlier versions saved the limits as part of the scenario only."""
    result_of(preempted_pair, slo={"ttft_ms": 250.0, "tpot_ms": None}).save(tmp_path / "out", figures=False)
    file = tmp_path / "out" / "summary.json"
    said = json.loads(file.read_text())
    del said["slo"], said["class_slo"]
    file.write_text(json.dumps(said))
    assert read_result(tmp_path / "out").slo == {"ttft_ms": 250.0}


def test_undefined_values_are_null_in_every_file(record: Any, tmp_path: Path) -> None:
    """A missing latency is null in Parquet, an empty cell in CSV and null in JSON; columns keep their types."""
    result_of(record([{"status": "rejected", "finish_s": 0.0}])).save(tmp_path / "out", figures=False)
    table = pq.read_table(tmp_path / "out" / "requests.parquet")
    assert table.column("ttft_ms").null_count == 1
    assert str(table.schema.field("reject_reason").type) in {"string", "large_string"}
    assert "nan" not in (tmp_path / "out" / "summary.csv").read_text().lower()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["summary"][0]["mean_ttft_ms"] is None


def test_the_same_result_gives_the_same_bytes_in_another_process(preempted_pair: Any, tmp_path: Path) -> None:
    """No file depends on the clock, on the process or on its hash seed."""
    result_of(preempted_pair).save(tmp_path / "here")
    (tmp_path / "recording").write_bytes(pickle.dumps(preempted_pair))
    program = (
        "import pickle, sys; from pathlib import Path; from simqueue.results.policyrun import PolicyRun\n"
        "from simqueue.results.result import Result\n"
        "run = PolicyRun('p', 0, pickle.loads(Path(sys.argv[1]).read_bytes()))\n"
        "Result({'name': 'toy'}, '0.1.0', 7, [run], slo={'ttft_ms': 500}).save(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "recording"), str(tmp_path / "there")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "4321"})
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_run_without_figures_does_not_load_what_draws_them(tmp_path: Path) -> None:
    """Running a scenario and saving its tables needs neither matplotlib nor seaborn."""
    program = (
        "import sys; import simqueue as sq\n"
        "sq.run('module08').save(sys.argv[1], figures=False)\n"
        "print(sorted({'matplotlib', 'seaborn'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "out")]
    assert subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout == "[]\n"


def test_an_earlier_result_is_replaced(preempted_pair: Any, record: Any, tmp_path: Path) -> None:
    """Saving again leaves only the new files: the earlier ones, figures included, are gone."""
    result_of(preempted_pair).save(tmp_path / "out")
    result_of(record(), second=True).save(tmp_path / "out", figures=False)
    assert names(tmp_path) == [f"out/{name}" for name in TABLES]
    assert json.loads((tmp_path / "out" / "scenario.json").read_text())["second"] is True


def test_an_empty_folder_is_filled(record: Any, tmp_path: Path) -> None:
    """A folder made beforehand, with nothing in it, is a good target."""
    (tmp_path / "out").mkdir()
    result_of(record()).save(tmp_path / "out", figures=False)
    assert names(tmp_path / "out") == TABLES


def test_foreign_files_are_never_replaced(record: Any, tmp_path: Path) -> None:
    """A folder of other files is an error, and so is a result with an additional file."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis: contains files that are no result of simqueue, such as chapter"):
        result_of(record()).save(tmp_path / "thesis", figures=False)
    result_of(record()).save(tmp_path / "out", figures=False)
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"out: notes\.txt is not part of the earlier result"):
        result_of(record()).save(tmp_path / "out", figures=False)
    assert names(tmp_path / "thesis") == ["chapter.txt"]
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_a_file_as_target_is_refused(record: Any, tmp_path: Path) -> None:
    """A target that is a file, or lies below one, is an error of one line."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file: is a file"):
        result_of(record()).save(tmp_path / "file")
    with pytest.raises(InputError, match="file is a file, not a folder") as caught:
        result_of(record()).save(tmp_path / "file" / "out")
    assert "\n" not in str(caught.value)


def test_a_failure_half_way_leaves_no_half_result(record: Any, tmp_path: Path) -> None:
    """A scenario that JSON cannot hold fails after the first tables are written: nothing stays behind."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        result_of(record(), bad=float("nan")).save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_earlier_result(record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails, the error is of one line and the earlier result is there, byte for byte."""
    result_of(record()).save(tmp_path / "out", figures=False)
    before = contents(tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", fail)
    with pytest.raises(RunError, match="out: cannot be written: No space left on device"):
        result_of(record()).save(tmp_path / "out", figures=False)
    assert contents(tmp_path) == before


def test_a_failed_rename_puts_the_earlier_result_back(
    record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the new folder cannot take the target's name, the earlier result has it again."""
    result_of(record()).save(tmp_path / "out", figures=False)
    before = contents(tmp_path)
    rename = Path.rename

    def fail_for_new(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_new)
    with pytest.raises(RunError, match="Permission denied"):
        result_of(record(), second=True).save(tmp_path / "out", figures=False)
    assert contents(tmp_path) == before
