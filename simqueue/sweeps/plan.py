"""What a sweep is to do: a scenario, the axes over it, and what holds for all cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simqueue.datafiles.yamlfile import Document
from simqueue.errors import InputError, show
from simqueue.installation import VERSION, code_digest, is_checkout
from simqueue.scenario.load import Source, parsed, read_source, source_of_mapping
from simqueue.scenario.model import Scenario
from simqueue.scenario.overrides import Override, apply
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.sweeps.cells import Cells
from simqueue.sweeps.design import Design, Points, check_design, points_of

Swept = Scenario | ResolvedScenario | str | Path | Mapping[str, Any]
"""What can be swept."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sweep is to do.

    Attributes
    ----------
    source : Source
        The scenario.
    overrides : tuple of Override
        Of all cells.
    design : Design
    """

    source: Source
    overrides: tuple[Override, ...]
    design: Design

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.source.document.data.get("name") or self.source.file_name or "scenario")

    def with_(self, more: Design, overrides: Sequence[Override]) -> Plan:
        """Return the plan with the axes of another design and with further overrides."""
        own = self.design
        design = replace(
            own,
            grid=(*own.grid, *more.grid),
            zipped=(*own.zipped, *more.zipped),
            table=(*own.table, *more.table),
            drawn=(*own.drawn, *more.drawn),
        )
        return replace(self, overrides=(*self.overrides, *overrides), design=design)

    def drawing(self, sample: str | None, points: int | None, seed: int | None) -> Plan:
        """Return the plan with another way of drawing; what is None stays."""
        given = {"sample": sample, "points": points, "seed": seed}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return replace(self, design=replace(self.design, **changes))

    def cells(self) -> tuple[Cells, Points]:
        """Return what makes cells, and the cells of the design.

        Raises
        ------
        InputError
            If the design is wrong.
        """
        check_design(self.design)
        cells = Cells(self.source, self.overrides, self.design.axes)
        cells.check()
        return cells, points_of(self.design, cells.is_whole)

    def about(self) -> dict[str, Any]:
        """Return what the tables of the sweep are of: version, scenario with its seed, and design."""
        keys = apply(self.source.document.data, self.overrides)[0]
        found = {"version": VERSION, "name": self.name, "seed": keys.get("seed", 0)}
        found |= {"checkout": code_digest()} if is_checkout() else {}
        return found | {"scenario": keys, "design": self.design.written}


def source_of(scenario: Swept) -> Source:
    """Return what was written down of a scenario.

    Raises
    ------
    InputError
        If there is no such scenario.
    """
    if isinstance(scenario, Mapping):
        return source_of_mapping(scenario)
    if isinstance(scenario, Scenario):
        return Source(scenario.written.document, scenario.base_dir, scenario.name)
    if isinstance(scenario, ResolvedScenario):
        return Source(Document("", dict(scenario.values)), scenario.base_dir, scenario.name)
    return read_source(scenario)


def overrides_of(overrides: Sequence[str], seed: int | None, replications: int | None) -> tuple[Override, ...]:
    """Return the overrides of all cells.

    Raises
    ------
    InputError
        If one is not written as it must be.
    """
    found = parsed(overrides, seed)
    if replications is not None:
        if not isinstance(replications, int) or isinstance(replications, bool) or replications < 1:
            raise InputError(f"replications = {show(replications)}: must be a whole number >= 1")
        found += parsed(["precision=null", f"replications={replications}"])
    return tuple(found)
