"""Designs in files: YAML with lines in its errors, and CSV."""

from __future__ import annotations

from pathlib import Path

import pytest

from simqueue.errors import InputError
from simqueue.sweeps.design import Design, points_of
from simqueue.sweeps.designfile import listed_axes, read_plan, table_axes

SCENARIO = "policies: {a: {scheduler: chunked}}\n"
DESIGN = """\
scenario: base.yaml
set: {workload.num_requests: 20}
replications: 2
grid:
  workload.arrivals.rate_rps: "4:8:3"
  policies.*.max_num_seqs: [4, 8]
zip:
  seed: [1, 2]
  policies.a: [{scheduler: chunked}, {scheduler: static}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a scenario."""
    (tmp_path / "base.yaml").write_text(SCENARIO)
    return tmp_path


def write(folder: Path, text: str, name: str = "sweep.yaml") -> Path:
    """Write a file and return it."""
    (folder / name).write_text(text)
    return folder / name


def test_a_design_file_is_a_scenario_with_axes(folder: Path) -> None:
    """Its scenario is beside it; it says what all cells have, and what differs."""
    plan = read_plan(write(folder, DESIGN))
    assert plan.source.file_name == "base"
    values = [(one.path, one.value) for one in plan.overrides]
    assert values == [(("workload", "num_requests"), 20), (("precision",), None), (("replications",), 2)]
    found = points_of(plan.design, lambda _: False)
    assert len(found.values) == 3 * 2 * 2
    assert found.values[0] == (4.0, 4, 1, {"scheduler": "chunked"})
    assert plan.design.written["grid"] == {"workload.arrivals.rate_rps": "4:8:3", "policies.*.max_num_seqs": [4, 8]}


def test_a_scenario_is_a_plan_without_axes(folder: Path) -> None:
    """What has policies and no scenario is a scenario, and no design."""
    assert read_plan(folder / "base.yaml").design == Design()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("num_requests: 20}", "num_requests: 20, replications: 4}"),
            "3: replications: the key is set twice: here and by",
        ),
        (
            ("num_requests: 20}", "num_requests: 20, precision.relative: 0.1}"),
            "3: replications: contradicts a precision",
        ),
        (("set: {", "seed: 1\nset: {seed: 2, "), "2: seed: the key is set twice: here and by set seed in line 3"),
        (("zip:", "zipp:"), "sweep.yaml:7: zipp: unknown key 'zipp'; did you mean 'zip'?"),
        (("base.yaml", "other.yaml"), "sweep.yaml:1: scenario = 'other.yaml': "),
        (("replications: 2", "replications: 0"), "sweep.yaml:3: replications = 0: must be >= 1"),
        (("scenario: base.yaml", ""), "scenario: this key is missing"),
        (('"4:8:3"', '"4:8:x"'), "sweep.yaml:5: grid workload.arrivals.rate_rps: 'x' as the number of values"),
        (("[4, 8]", "[]"), "sweep.yaml:6: grid policies.*.max_num_seqs: has no values"),
        (("[4, 8]", "{a: 1}"), "sweep.yaml:6: grid policies.*.max_num_seqs: must be a list of values"),
        (("grid:", "grid: 3\nx:"), "grid"),
    ],
)
def test_errors_have_lines(folder: Path, change: tuple[str, str], says: str) -> None:
    """What is wrong with a design file is said with its line."""
    file = write(folder, DESIGN.replace(*change, 1))
    with pytest.raises(InputError) as error:
        read_plan(file)
    assert says in str(error.value)
    assert str(folder / "sweep.yaml") in str(error.value)


def test_a_table_has_a_cell_in_each_row(folder: Path) -> None:
    """Cells of the file are YAML; its columns go together."""
    axes = table_axes(write(folder, "seed,policies.a.max_num_seqs,gpu\n1,4,h100\n2,null,'null'\n", "cells.csv"))
    assert [(axis.key, axis.values) for axis in axes] == [
        ("seed", (1, 2)),
        ("policies.a.max_num_seqs", (4, None)),
        ("gpu", ("h100", "null")),
    ]
    plan = read_plan(write(folder, "scenario: base.yaml\ncells: cells.csv\n"))
    assert points_of(plan.design, lambda _: False).values == ((1, 4, "h100"), (2, None, "null"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed,k\n1,\n", "cells.csv:2: k: the cell is empty"),
        ("seed,k\n1,[\n", "cells.csv:2: k: not valid YAML"),
        ("seed,k\n1\n", "cells.csv:2: 1 cell, the header has 2"),
        ("seed,k\n", "cells.csv: the file has a header and no rows"),
    ],
)
def test_errors_of_tables_have_lines(folder: Path, text: str, says: str) -> None:
    """What is wrong with a table is said with its line and column."""
    with pytest.raises(InputError) as error:
        table_axes(write(folder, text, "cells.csv"))
    assert says in str(error.value)


def test_cells_from_python_have_the_same_keys() -> None:
    """A mapping for each cell; one with other keys is an error."""
    assert [axis.values for axis in listed_axes([{"a": 1, "b": 2}, {"b": 4, "a": 3}])] == [(1, 3), (2, 4)]
    with pytest.raises(InputError, match="cells, item 1: unknown key 'c'"):
        listed_axes([{"a": 1}, {"c": 1}])
    with pytest.raises(InputError, match="cells, item 1: lacks a key"):
        listed_axes([{"a": 1, "b": 2}, {"a": 1}])
    with pytest.raises(InputError, match="must be a list of mappings"):
        listed_axes([])
