"""Sweeps from Python: rows, failures, keys, what is run again, tables and figures."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.execution.here import ThisProcess
from simqueue.results.classes import ALL_CLASSES
from simqueue.scenario import from_mapping
from simqueue.schedulers import SCHEDULERS, Chunked, scheduler
from simqueue.sweeps.keys import Keys

from .toys import RATE, SEATS, rows_in, toy


def swept(scenario: Any = None, **more: Any) -> sq.Sweep:
    """Return a sweep in this process."""
    return sq.sweep(toy() if scenario is None else scenario, **{"workers": 1, **more})


class Many(ThisProcess):
    """An executor that seems to do many tasks at a time."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def pays(self, seconds: float) -> bool:
        """Return that there are processes for everything but nothing."""
        return seconds > 0


def stored(folder: Path) -> int:
    """Return how many cells are stored in a folder."""
    with sqlite3.connect(folder / "cells.sqlite") as opened:
        found: int = opened.execute("SELECT count(*) FROM cells").fetchone()[0]
    opened.close()
    return found


def test_each_cell_is_a_run_of_its_own() -> None:
    """The rows of a cell are those of a run with the same flags, to the last bit; all cells have the same seed."""
    found = swept(grid={RATE: [4, 8.5], SEATS: [2, 3]}, replications=2)
    assert len(found.table) == 2 * 2 * 2 * 2
    values = [(4, 2), (4, 3), (8.5, 2), (8.5, 3)]
    for cell, rows in found.table.groupby("cell"):
        rate, seats = values[int(str(cell))]
        flags = [f"{RATE}={rate}", f"policies.a.max_num_seqs={seats}", f"policies.b.max_num_seqs={seats}"]
        result = sq.run(toy(), overrides=[*flags, "replications=2"], workers=1)
        wanted = [row for row in result.replication_rows if row["request_class"] == ALL_CLASSES]
        assert rows[RATE].tolist() == [rate] * 4
        assert rows[SEATS].tolist() == [seats] * 4
        for row, made in zip(wanted, rows.to_dict("records"), strict=True):
            for name, value in row.items():
                assert made[name] == value or (value is None and pd.isna(made[name]))


def test_bad_cells_are_rows_and_the_others_go_on() -> None:
    """A value that is not allowed, and a run that fails, are rows with an error in one line."""
    scenario = toy(policies={"a": {"scheduler": "chunked"}})
    found = swept(scenario, grid={"policies.a.max_num_seqs": [-1, 2], "workload.num_requests": [5, 10_000_000_000]})
    assert found.cells["status"].tolist() == ["failed", "failed", "done", "failed"]
    errors = found.failures["error"].tolist()
    assert errors[0] == "policies.a.max_num_seqs=-1: must be >= 1"
    assert "num_requests" in errors[2]
    failed = found.table[found.table["status"] == "failed"]
    assert failed[["policy", "replication", "mean_ttft_ms"]].isna().all(axis=None)
    assert not any("\n" in text for text in errors)


def test_all_bad_cells_are_a_table_of_errors() -> None:
    """If no value is allowed, there is a table all the same."""
    found = swept(grid={RATE: [-1, -2]})
    assert found.failures["error"].tolist() == [f"{RATE}=-1: must be > 0", f"{RATE}=-2: must be > 0"]


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        (
            {"workload.arrivals.rate": [1, 2]},
            "grid workload.arrivals.rate: unknown key 'rate'; did you mean 'rate_rps'?",
        ),
        ({"policies.c.max_num_seqs": [1]}, "grid policies.c.max_num_seqs: unknown policy 'c'; known: a, b"),
        ({"workloads.*.num_requests": [1]}, "workloads has no keys that '*' could stand for"),
        ({}, "the sweep has no axes"),
        ({RATE: []}, f"grid {RATE}: has no values"),
        ({"policies.a": [{"scheduler": "chunked"}], SEATS: [3]}, "the key is set twice: here and by grid policies.a"),
    ],
)
def test_what_has_nothing_to_do_with_values(grid: dict[str, Any], says: str) -> None:
    """A misspelt key is one error, and no table in which every cell has failed."""
    with pytest.raises(InputError) as error:
        swept(grid=grid)
    assert says in str(error.value)


def test_a_scenario_that_is_wrong_itself() -> None:
    """Its own mistakes are those of any command."""
    with pytest.raises(InputError, match=r"kv_cache.blocks = -5: must be"):
        swept(toy(kv_cache={"blocks": -5}), grid={RATE: [1, -2]})


def test_a_key_is_set_once() -> None:
    """An axis and an override of the same key contradict each other."""
    with pytest.raises(InputError, match="grid seed: the key is set twice: here and by --seed 4"):
        swept(grid={"seed": [1, 2]}, seed=4)
    with pytest.raises(InputError, match=r"here and by --set policies.a.max_num_seqs=4"):
        swept(grid={SEATS: [1, 2]}, overrides=["policies.a.max_num_seqs=4"])


def test_whole_numbers_where_others_are_no_scenario() -> None:
    """A range over a whole number has whole numbers, one over a rate or a share has not."""
    found = swept(
        drawn={SEATS: "2:9", RATE: "2:9", "kv_cache.memory_share": "0.5:1", "max_model_len": "log:100:200"},
        sample="lhs",
        points=4,
    )
    kinds = {name: found.table[name].dtype.kind for name in found.axes}
    assert kinds == {SEATS: "i", RATE: "f", "kv_cache.memory_share": "f", "max_model_len": "i"}
    assert len(found.failures) == 0


def test_a_range_over_all_numbers_is_no_overflow() -> None:
    """Its values are no rates, and each is a failed cell."""
    assert len(swept(grid={RATE: "-1e308:1e308:2"}).failures) == 1


def test_shares_of_the_capacity() -> None:
    """The rate is the share of the smallest capacity of the cell's own policies, which other axes change."""
    found = swept(grid={RATE: "capacity:0.5,0.9", SEATS: [2, 4]})
    share = f"{RATE}.share_of_capacity"
    for seats in (2, 4):
        capacity = sq.capacity(toy(), overrides=[f"{SEATS}={seats}"])["capacity_rps"].min()
        rows = found.table[found.table[SEATS] == seats]
        assert set(rows[RATE]) == {0.5 * capacity, 0.9 * capacity}
        assert set(rows[share]) == {0.5, 0.9}
    assert found.pivot("load", share, SEATS, policy="a").notna().all(axis=None)
    assert len(found.plot(share, "mean_ttft_ms").get_lines()) >= 4


def test_what_is_stored_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that grows runs only what is new; the table is the one of the whole, to the last byte."""
    swept(grid={RATE: [4, 8]}, out=tmp_path / "grown")
    assert stored(tmp_path / "grown") == 2
    whole = swept(grid={RATE: [12, 4, 8]}, out=tmp_path / "whole")
    done: list[tuple[str, int, int]] = []
    swept(grid={RATE: [12, 4, 8]}, out=tmp_path / "grown", progress=lambda *now: done.append(now))
    assert [number for _, number, _ in done] == [1]
    assert rows_in(tmp_path / "grown") == rows_in(tmp_path / "whole")
    loaded = sq.load_sweep(tmp_path / "whole")
    pd.testing.assert_frame_equal(loaded.table, whole.table)
    assert loaded.about == json.loads(json.dumps(whole.about))
    assert loaded.axes == (RATE,)
    monkeypatch.chdir(tmp_path)
    pd.testing.assert_frame_equal(pd.read_parquet("whole/rows.parquet"), whole.table)


def test_cells_that_failed_are_tried_again(tmp_path: Path) -> None:
    """They are not stored."""
    for _ in range(2):
        assert len(swept(grid={RATE: [4, -8]}, out=tmp_path).failures) == 1
    assert stored(tmp_path) == 1


def test_cells_that_are_alike_run_once(tmp_path: Path) -> None:
    """Two cells of the design with the same settled values are two rows and one run."""
    found = swept(toy(seed=7), zipped={"seed": [7, 7], "fast": [True, True]}, out=tmp_path)
    assert len(found.cells) == 1
    default = {"distribution": "constant", "value": 64}
    grid = {"workload.prompt_tokens": [default, {"distribution": "constant", "value": 64.0}, {**default, "value": 65}]}
    found = swept(grid=grid, out=tmp_path)
    assert len(found.cells) == 2
    found = swept(grid={"step_time.per_context_token_s": [0, None]}, out=tmp_path)
    assert (len(found.cells), stored(tmp_path)) in {(2, 2), (2, 3)}


def test_the_table_does_not_depend_on_who_does_it(tmp_path: Path) -> None:
    """Whether cells share the processes or their replications do: the same bytes. The order of axes orders the rows."""
    grid = {RATE: [4, 8, -1], SEATS: [2, 4]}
    for folder, number in (("one", 1), ("two", 2), ("many", 20)):
        swept(grid=grid, out=tmp_path / folder, workers=Many(number), replications=2)
    assert rows_in(tmp_path / "one") == rows_in(tmp_path / "two") == rows_in(tmp_path / "many")
    found, other = sq.load_sweep(tmp_path / "one"), swept(grid=dict(reversed(grid.items())), replications=2)
    order = [RATE, SEATS, "policy", "replication"]
    tables = [one.table.drop(columns="cell").sort_values(order, ignore_index=True) for one in (found, other)]
    pd.testing.assert_frame_equal(tables[0], tables[1][tables[0].columns])


@pytest.mark.parametrize(
    ("cells", "replications", "sent"), [(3, 1, True), (3, 2, True), (3, 8, False), (1, 2, False), (4, 8, True)]
)
def test_few_cells_are_sent_if_that_takes_less_time(cells: int, replications: int, sent: bool) -> None:
    """With 4 workers, 3 cells of one replication take the time of one if each has a worker, else of three."""
    calls: list[int] = []

    class Counting(Many):
        def unordered(self, function: Any, tasks: Any) -> Any:
            many = list(tasks)
            calls.append(len(many))
            return super().unordered(function, many)

    where = Counting(4)
    where.pays = lambda _: True  # type: ignore[method-assign] # from the first cell on
    swept(grid={RATE: [4, 5, 6, 7][:cells]}, replications=replications, workers=where)
    assert (calls == [cells]) == sent


class Ends(Chunked):
    """A scheduler that ends its program at once, or lets the system ask for that."""

    def plan(self, *_: Any, **__: Any) -> Any:
        """Exit, after a signal if there is a handler of one."""
        if signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL:
            signal.raise_signal(signal.SIGUSR1)
        sys.exit(3)


@pytest.fixture
def ending() -> Iterator[dict[str, Any]]:
    """Return a scenario with a policy that exits."""
    scheduler("ends")(Ends)
    yield toy(policies={"a": {"scheduler": "ends"}, "b": {"scheduler": "chunked"}})
    del SCHEDULERS["ends"]


def test_an_exit_in_a_scheduler_is_a_failed_cell(ending: dict[str, Any], tmp_path: Path) -> None:
    """Whoever runs the cell: the others go on, and the table has the same bytes."""
    grid = {"policies.a.scheduler": ["ends", "chunked", "static"]}
    for folder, workers in (("here", ThisProcess()), ("sent", Many(2))):
        found = swept(ending, grid=grid, out=tmp_path / folder, workers=workers)
        assert found.failures["error"].tolist() == ["exit with 3"]
    assert rows_in(tmp_path / "here") == rows_in(tmp_path / "sent")


def test_an_exit_by_a_signal_ends_the_sweep(ending: dict[str, Any]) -> None:
    """It comes in the middle of a cell and is no failure of it."""
    before = signal.signal(signal.SIGUSR1, lambda *_: sys.exit(143))
    try:
        with pytest.raises(SystemExit, match="143"):
            swept(ending, grid={RATE: [4, 8]})
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_classes_have_a_table_of_their_own(tmp_path: Path) -> None:
    """One row for each class and one for all; a later design without classes leaves no table of an earlier one."""
    scenario = toy()
    scenario["workload"]["classes"] = {"free": {"weight": 1}, "paid": {"weight": 1}}
    found = swept(scenario, grid={RATE: [4, 8]}, out=tmp_path)
    assert set(found.classes["request_class"]) == {"free", "paid"}
    assert len(found.classes) == 2 * len(found.table)
    pd.testing.assert_frame_equal(sq.load_sweep(tmp_path).classes, found.classes)
    swept(grid={RATE: [4]}, out=tmp_path)
    assert not (tmp_path / "classes.parquet").exists()


def test_columns_of_axes_have_their_types() -> None:
    """Whole numbers, floats, truth values and text; lists and mappings as JSON; names that the summary has are told."""
    zipped = {
        "seed": [1, 2],
        "workload.arrivals.rate_rps": [4, 4.5],
        "fast": [True, False],
        "kv_cache.blocks": [200, 300.0],
        "policies.a": [{"scheduler": "chunked"}, {"scheduler": "static"}],
        "warmup_s": [0, 0.5],
        "horizon_s": [None, 100],
    }
    table = swept(zipped=zipped).table.drop_duplicates("cell")
    assert table["seed"].tolist() == [1, 2]
    assert table["fast"].tolist() == [True, False]
    assert table["policies.a"].tolist() == ['{"scheduler": "chunked"}', '{"scheduler": "static"}']
    assert table["axis.warmup_s"].tolist() == [0.0, 0.5]
    assert table["horizon_s"].isna().tolist() == [True, False]


def test_the_file_says_what_it_is_of(tmp_path: Path) -> None:
    """Version, seed, scenario and design are in the metadata; the folder is not."""
    swept(grid={RATE: "4:8:3"}, seed=5, out=tmp_path / "here")
    about = json.loads(pq.read_schema(tmp_path / "here" / "rows.parquet").metadata[b"simqueue"])
    assert about["version"] == sq.__version__
    assert about["seed"] == 5
    assert about["scenario"]["workload"]["num_requests"] == 15
    assert about["design"] == {"grid": {RATE: "4:8:3"}}
    assert str(tmp_path).encode() not in rows_in(tmp_path / "here")


def test_keys_follow_what_rows_depend_on(tmp_path: Path) -> None:
    """The content of a file counts and not its place, each value and not the name, the code of own classes too."""

    def key(name: str = "t.csv", rows: str = "0,5,3\n1,5,3\n", **more: Any) -> str:
        (tmp_path / name).write_text(f"arrival_s,prompt_tokens,output_tokens\n{rows}")
        trace = {"trace": {"format": "csv", "path": name}}
        return Keys().key(from_mapping({**toy(), "workload": trace, **more}, base_dir=tmp_path).resolve())

    first = key()
    assert key("u.csv") == first
    assert key(name="t.csv", rows="0,5,3\n2,5,3\n") != first
    assert key() == first
    scenario = from_mapping(toy())
    other = scenario.model_copy(update={"name": "other"})
    assert Keys().key(scenario.resolve()) == Keys().key(other.resolve())
    for change in ("seed=4", "replications=2", "fast=false", "summary.percentiles=[90]", f"{SEATS}=3"):
        assert Keys().key(from_mapping(toy(), [change]).resolve()) != Keys().key(scenario.resolve())


def test_pivots_and_figures_mix_nothing() -> None:
    """Rows of several values of another axis, or of several policies, are not averaged together."""
    found = swept(grid={RATE: [4, 8], SEATS: [2, 4]}, replications=2)
    with pytest.raises(InputError, match="rows with several values of policy would be mixed"):
        found.pivot("mean_ttft_ms", RATE, SEATS)
    wide = found.pivot("mean_ttft_ms", RATE, SEATS, policy="b")
    rows = found.table[(found.table[RATE] == 8) & (found.table[SEATS] == 2) & (found.table["policy"] == "b")]
    assert wide.loc[8, 2] == pytest.approx(rows["mean_ttft_ms"].mean())
    with pytest.raises(InputError, match=f"rows with several values of {SEATS}".replace("*", r"\*")):
        found.plot(RATE, "mean_ttft_ms", hue="policy")
    ax = found.where(policy="a").plot(RATE, "mean_ttft_ms")
    legend = ax.figure.legends[0]  # type: ignore[union-attr] # a new figure
    assert [text.get_text() for text in legend.get_texts()] == ["max_num_seqs 2", "max_num_seqs 4"]
    assert ax.get_xlabel() == f"{RATE} (requests/s)"
    with pytest.raises(InputError, match="y: unknown column 'mean_tft_ms'; did you mean 'mean_ttft_ms'"):
        found.plot(RATE, "mean_tft_ms")


def test_there_is_no_sweep(tmp_path: Path) -> None:
    """A folder without a table, and a table of something else, are one line."""
    with pytest.raises(InputError, match="no sweep here"):
        sq.load_sweep(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="is no table of a sweep: it has no note of a sweep"):
        sq.load_sweep(tmp_path)
