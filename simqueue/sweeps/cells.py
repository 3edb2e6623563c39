"""Cells: the scenarios that a design makes of one scenario, settled."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from simqueue.errors import InputError, KeyPath, Problem
from simqueue.experiment.offered_load import policy_loads
from simqueue.scenario.load import Source
from simqueue.scenario.overrides import Override, expanded
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.written import is_below
from simqueue.sweeps.axes import Axis, Range, Share, plain_value
from simqueue.sweeps.design import Values

FLAG: Final = "--set "
"""Begins what errors name as the place of a value of an axis: the flag with which `simqueue run` does the same."""
_BETWEEN: Final = (0.381, 0.618, 0.237)
"""Shares of a range at one of which there is a number that is not whole."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A settled cell.

    Attributes
    ----------
    scenario : ResolvedScenario
    values : tuple
        What the axes have, with rates instead of shares of the capacity.
    """

    scenario: ResolvedScenario
    values: Values


@dataclass(frozen=True)
class Cells:
    """Makes cells: the scenario with what each gives to the axes. The file is read once.

    Attributes
    ----------
    source : Source
    overrides : tuple of Override
        Of all cells.
    axes : tuple of Axis
    """

    source: Source
    overrides: tuple[Override, ...]
    axes: tuple[Axis, ...]
    _capacities: dict[str, float] = field(default_factory=dict)

    @cached_property
    def paths(self) -> tuple[KeyPath, ...]:
        """The path of the key of each axis."""
        return tuple(axis.path for axis in self.axes)

    def check(self) -> None:
        """Raise `InputError` if two axes, or an axis and an override of all cells, set the same key."""
        data = self.source.document.data
        taken: list[tuple[KeyPath, str]] = [
            (path, one.flag) for one in self.overrides for path in expanded(data, one.path, one.flag)
        ]
        for axis, path in zip(self.axes, self.paths, strict=True):
            own = expanded(data, path, axis.place)
            for other, place in taken:
                if any(found == other or is_below(found, other) or is_below(other, found) for found in own):
                    raise InputError.at(axis.place, f"the key is set twice: here and by {place}")
            taken += [(found, axis.place) for found in own]

    def settled(self, values: Values) -> Cell:
        """Return a cell.

        Parameters
        ----------
        values : tuple
            One per axis.

        Raises
        ------
        InputError
            If it is no scenario, or has no capacity where shares of it are asked for.
        """
        shares = [number for number, value in enumerate(values) if isinstance(value, Share)]
        if shares:
            capacity_rps = self._capacity_rps(values, shares)
            values = tuple(value.of_capacity * capacity_rps if isinstance(value, Share) else value for value in values)
        return Cell(self._scenario(values, range(len(values))), values)

    def is_whole(self, axis: Axis) -> bool:
        """Return whether the values of an axis with a range must be whole numbers: others are no scenario."""
        found = axis.values
        if not isinstance(found, Range) or axis.of_capacity:
            return False
        low, high = sorted((found.low, found.high))
        whole = math.ceil(low)
        between = next(
            (x for share in _BETWEEN if not (x := float(low + Fraction(share) * (high - low))).is_integer()), None
        )
        if whole > high or between is None:
            return False
        return self._is_wrong(axis, between) and not self._is_wrong(axis, whole)

    def _is_wrong(self, axis: Axis, value: float) -> bool:
        """Return whether a scenario with this value has something wrong with it, and not only with its other keys."""
        override = _override(axis.key, axis.path, value)
        try:
            self.source.scenario([*self.overrides, override])
        except InputError as error:
            return any(problem.place == override.flag for problem in error.problems)
        return False

    def _scenario(self, values: Values, chosen: Sequence[int]) -> ResolvedScenario:
        own = [_override(self.axes[number].key, self.paths[number], values[number]) for number in chosen]
        return self.source.scenario([*self.overrides, *own]).resolve()

    def _capacity_rps(self, values: Values, shares: Sequence[int]) -> float:
        """Return the smallest capacity of the policies of a cell, whose rate is that of the scenario."""
        others = [number for number in range(len(values)) if number not in shares]
        key = json.dumps([plain_value(values[number]) for number in others], default=repr)
        if key not in self._capacities:
            self._capacities[key] = smallest_capacity_rps(self._scenario(values, others))
        return self._capacities[key]


def smallest_capacity_rps(scenario: ResolvedScenario) -> float:
    """Return the capacity of the policy that can sustain the least, in requests/s.

    Raises
    ------
    InputError
        If a policy has none.
    """
    found = policy_loads(scenario, estimates=False)
    for name, load in found.items():
        if load.capacity is None:
            raise InputError(f"capacity: policy {name} has none: {load.why_not}")
    return min(load.capacity.max_rate_rps for load in found.values() if load.capacity is not None)


def own_problems(errors: Sequence[InputError], axes: Sequence[Axis]) -> list[Problem]:
    """Return what is wrong with all cells and not for the values of an axis: a misspelt key, or the scenario itself.

    Parameters
    ----------
    errors : sequence of InputError
        That of each cell.
    axes : sequence of Axis
    """
    common: dict[tuple[KeyPath, str, str], Problem] = {_identity(one): one for one in errors[0].problems}
    for error in errors[1:]:
        there = {_identity(problem) for problem in error.problems}
        common = {key: problem for key, problem in common.items() if key in there}
    return list(_placed(common.values(), axes))


def _placed(problems: Sequence[Problem] | Any, axes: Sequence[Axis]) -> Iterator[Problem]:
    """Yield the problems that are no matter of values; those of keys of axes with the place of the axis."""
    places = {f"{FLAG}{axis.key}": axis.place for axis in axes}
    for problem in problems:
        flag = problem.place.partition("=")[0]
        if flag not in places:
            yield problem
        elif problem.text.startswith("unknown "):
            yield Problem(problem.path, problem.text, problem.value, places[flag])


def _identity(problem: Problem) -> tuple[KeyPath, str, str]:
    return problem.path, problem.text, problem.place.partition("=")[0]


def _override(key: str, path: KeyPath, value: Any) -> Override:
    """Return the override that gives a value to a key; see `FLAG`."""
    return Override(path, value, f"{FLAG}{key}={json.dumps(value, default=repr)}")
