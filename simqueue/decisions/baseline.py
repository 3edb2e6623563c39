"""The baseline file: a small JSON file for a repository, with which later results are compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import Field, model_validator

from simqueue.datafiles.text import read_json
from simqueue.datafiles.yamlfile import Document
from simqueue.decisions.recorded import Recorded, recorded
from simqueue.errors import InputError
from simqueue.outputs import Place, reserved_file
from simqueue.scenario.paths import moved
from simqueue.scenario.problems import validated
from simqueue.scenario.written import Written
from simqueue.settings import Settings, invalid

if TYPE_CHECKING:
    from simqueue.results.result import Result

MARK: Final = "simqueue_baseline"
"""Key that makes a JSON file a baseline; its value is the version of the format."""


class BaselineFile(Settings):
    """The content of a baseline file."""

    simqueue_baseline: Literal[1]
    version: str
    seed: int
    confidence: float = Field(gt=0, lt=1)
    random: bool
    scenario: dict[str, Any]
    contents: dict[str, str]
    values: dict[str, dict[str, list[int | float | None]]] = Field(min_length=1)
    halves: dict[str, dict[str, float]]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for policy, columns in self.values.items():
            counts = {len(found) for found in columns.values()}
            if len(counts) != 1 or 0 in counts:
                raise invalid("every column must have one value per replication", "values", policy)
        return self


def write_baseline(result: Result | Recorded, path: str | Path | Place) -> None:
    """Write the file with which later results are compared.

    It has every value of the scenario, which can be run again, and the summary of each replication. Relative paths of
    the scenario start at the folder of the file. The same result makes the same bytes.

    Parameters
    ----------
    result : Result
    path : str, Path or Place
        An earlier file is replaced.

    Raises
    ------
    InputError
        If the file cannot be written.
    RunError
        If writing fails; an earlier file is then unchanged.
    """
    found = result if isinstance(result, Recorded) else recorded(result)
    with reserved_file(path) as place:
        place.write_text("\n".join(_lines(found, place.target.parent)) + "\n")


def read_baseline(file: Path) -> Recorded:
    """Return what a baseline file holds.

    Raises
    ------
    InputError
        If it cannot be read, has another format, or an unknown or wrong key.
    """
    content = read_json(file)
    try:
        made = validated(BaselineFile, Written(Document("", content)))
    except InputError as error:
        raise InputError.of(replace(problem, place=str(file)) for problem in error.problems) from None
    return Recorded(
        label=str(file),
        version=made.version,
        seed=made.seed,
        scenario=made.scenario,
        base_dir=file.parent.absolute(),
        confidence=made.confidence,
        random=made.random,
        values={name: {key: tuple(own) for key, own in found.items()} for name, found in made.values.items()},
        halves=made.halves,
        contents=made.contents,
    )


def is_baseline(path: Path) -> bool:
    """Return whether a file is a baseline, of whichever version of the format.

    Raises
    ------
    InputError
        If it ends in .json and cannot be read.
    """
    return path.suffix == ".json" and path.is_file() and MARK in read_json(path)


def _lines(found: Recorded, folder: Path) -> Iterator[str]:
    """Yield the lines of the file: one for each value of the scenario and each column, so that changes are seen."""
    scenario = moved(found.scenario, found.base_dir, folder)
    head = {MARK: 1, "version": found.version, "seed": found.seed, "confidence": found.confidence}
    yield "{"
    for key, value in {**head, "random": found.random}.items():
        yield f'  "{key}": {_json(value)},'
    indented = json.dumps(scenario, allow_nan=False, ensure_ascii=False, indent=2).replace("\n", "\n  ")
    yield f'  "scenario": {indented},'
    yield f'  "contents": {_json(dict(found.contents))},'
    yield f'  "values": {_columns(found.values)},'
    yield f'  "halves": {_columns(found.halves)}'
    yield "}"


def _columns(values: Mapping[str, Mapping[str, Any]]) -> str:
    """Return columns by policy as JSON, each column on a line of its own."""
    policies = [
        f"    {_json(policy)}: {{\n"
        + ",\n".join(f"      {_json(name)}: {_json(found)}" for name, found in columns.items())
        + "\n    }"
        for policy, columns in values.items()
    ]
    return "{\n" + ",\n".join(policies) + "\n  }" if policies else "{}"


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)
