"""Questions in files: a scenario, a space, and the limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from simqueue.datafiles.yamlfile import Document, read
from simqueue.errors import inside
from simqueue.scenario.library import STDIN, find
from simqueue.scenario.load import Source, read_source, source_in
from simqueue.scenario.overrides import Override, parse_key
from simqueue.scenario.problems import validated
from simqueue.scenario.variation import Seed
from simqueue.scenario.written import Written
from simqueue.settings import Settings
from simqueue.sweeps.axes import Axis, axis_of


class TaskFile(Settings):
    """The keys of a file for ``simqueue tune``."""

    scenario: str = Field(
        min_length=1, description="a scenario file, relative to this one, or the name of a packaged scenario"
    )
    set_: dict[str, Any] = Field(default_factory=dict, alias="set", description="keys that all systems have")
    seed: Seed | None = Field(None, description="seed of the traffic; null: that of the scenario")
    policy: str | None = Field(None, description="the policy that varies; null: the only one")
    space: dict[str, Any] = Field(min_length=1, description="key -> values, as the axes of a sweep")
    slo: list[str] = Field(min_length=1, description="the limits, such as p99_ttft_ms<=1000")
    attainment: float | None = Field(None, description="share of the requests that meet limits of single requests")
    minimize: str | None = Field(None, description="cost, or a column of the summary")
    maximize: str | None = Field(None, description="a column of the summary, instead of minimize")
    tie: str | None = Field(None, description="column that decides between systems of the same cost")
    zone: str | None = Field(None, description="difference of the metric that does not matter, such as 2%")
    confidence: float | None = Field(None, description="probability that the answer is right")


_OF_SPACE = ("scenario", "set_", "seed", "policy", "space")


@dataclass(frozen=True, slots=True)
class Task:
    """What a file says of a search.

    Attributes
    ----------
    source : Source
        The scenario.
    overrides : tuple of Override
    axes : tuple of Axis
    policy : str or None
    asked : dict
        Other parameters of `tune` that are given.
    """

    source: Source
    overrides: tuple[Override, ...] = ()
    axes: tuple[Axis, ...] = ()
    policy: str | None = None
    asked: dict[str, Any] = field(default_factory=dict)


def read_task(path: str | Path) -> Task:
    """Read a file with a space and limits, or a scenario alone.

    Raises
    ------
    InputError
        One line per problem, with its line; if there is no such file.
    """
    file = find(path)
    document = read(file)
    if "policies" in document.data or not any(key in document.data for key in ("space", "slo")):
        return Task(source_in(document, file))
    folder = Path() if file == STDIN else file.parent
    written = Written(document, {}, folder.absolute())
    given = validated(TaskFile, written)
    with written.locating(), inside("scenario"):
        found = folder / given.scenario
        source = read_source(found if found.is_file() else given.scenario)
    axes = tuple(
        axis_of(key, values, f"{_place(document, 'space', key)}: space {key}") for key, values in given.space.items()
    )
    asked = given.model_dump(exclude={*_OF_SPACE}, exclude_none=True)
    return Task(source, tuple(_overrides(document, given)), axes, given.policy, asked)


def _overrides(document: Document, given: TaskFile) -> list[Override]:
    found = []
    for key, value in given.set_.items():
        place = _place(document, "set", key)
        found.append(Override(parse_key(key, place), value, place))
    if given.seed is not None:
        found.append(Override(("seed",), given.seed, _place(document, "seed")))
    return found


def _place(document: Document, *path: str) -> str:
    return f"{document.file}:{document.position(path).line}"
