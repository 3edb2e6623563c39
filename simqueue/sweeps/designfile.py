"""Designs in files: YAML with a scenario and its axes, and CSV with one row per cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from simqueue.datafiles.csvtable import read_table
from simqueue.datafiles.regular import is_there
from simqueue.datafiles.yamlfile import Document, parse_value, read
from simqueue.errors import InputError, KeyPath, Problem
from simqueue.names import unknown
from simqueue.scenario.library import STDIN, find
from simqueue.scenario.load import read_source, source_in
from simqueue.scenario.overrides import Override, parse_key
from simqueue.scenario.plaindata import plain
from simqueue.scenario.problems import validated
from simqueue.scenario.variation import Replications, Seed
from simqueue.scenario.written import Written
from simqueue.settings import Settings
from simqueue.sweeps.axes import MOST_VALUES, Axis, axis_of
from simqueue.sweeps.design import Design, Sample
from simqueue.sweeps.plan import Plan

_AXES: Final = ("grid", "zip", "draw", "cells")


class DesignFile(Settings):
    """The keys of a design file."""

    scenario: str = Field(
        min_length=1, description="a scenario file, relative to this one, or the name of a packaged scenario"
    )
    set_: dict[str, Any] = Field(default_factory=dict, alias="set", description="keys that all cells have")
    seed: Seed | None = Field(None, description="seed of all cells; null: that of the scenario")
    replications: Replications | None = Field(None, description="of each cell; null: those of the scenario")
    grid: dict[str, Any] = Field(default_factory=dict, description="axes, every value with every other")
    zip: dict[str, Any] = Field(default_factory=dict, description="axes, the first values together, and so on")
    draw: dict[str, Any] = Field(default_factory=dict, description="axes whose values are drawn together")
    cells: str | None = Field(None, min_length=1, description="a CSV file with a column per key and a row per cell")
    sample: Sample = Field("sobol", description="how values are drawn")
    points: int | None = Field(None, ge=1, le=MOST_VALUES, description="how many are drawn")
    design_seed: Seed = Field(0, description="seed of the drawing")


def read_plan(path: str | Path) -> Plan:
    """Read what a file says of a sweep: a design file with its scenario, or a scenario without axes.

    Raises
    ------
    InputError
        One line per problem of a design file, with its line; if there is no such file.
    """
    file = find(path)
    document = read(file)
    keys = document.data
    if "scenario" not in keys and ("policies" in keys or not any(name in keys for name in _AXES)):
        return Plan(source_in(document, file), (), Design())
    return _plan(document, Path() if file == STDIN else file.parent)


def _plan(document: Document, folder: Path) -> Plan:
    written = Written(document, {}, folder.absolute())
    given = validated(DesignFile, written)
    axes = {name: tuple(_axes(document, name)) for name in _AXES[:3]}
    beside = folder / given.scenario
    try:
        file = find(beside if is_there(beside) else given.scenario)
    except InputError as error:
        raise written.complaint([Problem(("scenario",), error.problems[0].text)]) from None
    design = Design(
        axes["grid"],
        axes["zip"],
        () if given.cells is None else table_axes(folder / given.cells),
        axes["draw"],
        given.sample,
        given.points,
        given.design_seed,
    )
    return Plan(read_source(file), tuple(_overrides(document)), design)


def _axes(document: Document, name: str) -> Iterator[Axis]:
    for key, values in document.data.get(name, {}).items():
        yield axis_of(key, values, f"{_place(document, (name, key))}: {name} {key}")


def _overrides(document: Document) -> Iterator[Override]:
    """Yield the overrides of all cells: those of `set`, the seed and the replications."""
    for key, value in document.data.get("set", {}).items():
        place = _place(document, ("set", key))
        yield Override(parse_key(key, place), value, place)
    for key in ("seed", "replications"):
        if document.data.get(key) is None:
            continue
        place = _place(document, (key,))
        _check_once(document, key, place)
        if key == "replications":
            yield Override(("precision",), None, place)
        yield Override((key,), document.data[key], place)


def _check_once(document: Document, key: str, place: str) -> None:
    """Raise `InputError` if `set` has the seed or the replications, or what replications replace, as well."""
    for name in document.data.get("set", {}):
        if name.partition(".")[0] in (key, "precision" if key == "replications" else key):
            line = document.position(("set", name)).line
            text = "the key is set twice" if name == key else "contradicts a precision"
            raise InputError.at(f"{place}: {key}", f"{text}: here and by set {name} in line {line}")


def _place(document: Document, path: KeyPath) -> str:
    return f"{document.file}:{document.position(path).line}"


def table_axes(path: Path) -> tuple[Axis, ...]:
    """Return the axes of a CSV file: a column per key, and a row per cell, whose cells are YAML.

    Raises
    ------
    InputError
        If it cannot be read, or a cell of it is empty or no YAML.
    """
    label = str(path)
    table = read_table(path, label)
    found = []
    for name in table.names:
        place = f"{label}: {name or 'a column without a name'}"
        values = [
            _cell(text, f"{label}:{line}: {name}") for text, line in zip(table.text(name), table.lines, strict=True)
        ]
        found.append(axis_of(name, values, place))
    return tuple(found)


def _cell(text: str, place: str) -> Any:
    if not text:
        raise InputError.at(place, "the cell is empty; write null for no value, or leave the column out")
    try:
        return parse_value(text, "--cell")
    except InputError as error:
        raise InputError.at(place, error.problems[0].text) from None


def listed_axes(cells: Sequence[Mapping[str, Any]]) -> tuple[Axis, ...]:
    """Return the axes of cells as Python has them: a mapping of keys to values for each.

    Raises
    ------
    InputError
        If there are none, or they have different keys.
    """
    rows = [dict(cell) if isinstance(cell, Mapping) else None for cell in cells]
    if not rows or any(row is None for row in rows):
        raise InputError("cells: must be a list of mappings of keys to values, one per cell")
    first = rows[0] or {}
    for number, row in enumerate(rows):
        strange = next((key for key in row or {} if key not in first), None)
        if strange is not None or len(row or {}) < len(first):
            text = "lacks a key" if strange is None else unknown("key", strange, first)
            raise InputError(f"cells, item {number}: {text}; all must have the keys of the first one")
    return tuple(axis_of(key, [plain((row or {})[key]) for row in rows], f"cells {key}") for key in first)
