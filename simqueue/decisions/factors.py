"""What is varied in a global sensitivity analysis: keys of a scenario, and the error of its step times."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from simqueue.errors import InputError
from simqueue.experiment.at_errors import Errors
from simqueue.experiment.model_error import error_source, published_errors
from simqueue.experiment.runner import run
from simqueue.sweeps.axes import Axis, Range, Share, axis_of

if TYPE_CHECKING:
    from simqueue.execution import Executor
    from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario

KEY: Final = "step_time_factor"
_BELOW_1: Final = math.nextafter(1, 0)


@dataclass(frozen=True, slots=True)
class Factor:
    """An input of the analysis: one or several keys that move together.

    Attributes
    ----------
    name : str
        The key, or what the keys are.
    axes : tuple of Axis
    whole : tuple of bool
        Of which axes the values are whole numbers.
    """

    name: str
    axes: tuple[Axis, ...]
    whole: tuple[bool, ...]

    @property
    def written(self) -> str:
        """The values, as text."""
        texts = [axis.written if isinstance(axis.written, str) else json.dumps(axis.written) for axis in self.axes]
        return ", ".join(dict.fromkeys(texts))

    def values(self, share: float) -> Iterator[Any]:
        """Yield the value of each key at a share of the range, from 0 to 1: both ends are there."""
        for axis, whole in zip(self.axes, self.whole, strict=True):
            is_range = isinstance(axis.values, Range) and axis.values.count is None
            value = axis.drawn(share if is_range and not whole else min(share, _BELOW_1), whole=whole)
            yield value.of_capacity if isinstance(value, Share) else value


def check_varies(axis: Axis) -> None:
    """Raise `InputError` if an axis has a single value."""
    if isinstance(axis.values, tuple) and len(axis.values) < 2:
        raise InputError.at(axis.place, "needs a range LOW:HIGH, or several values")


def error_factors(
    scenario: ResolvedScenario, axes: Sequence[Axis], where: Executor
) -> tuple[tuple[Factor, ...], tuple[str, ...]]:
    """Return the error of the step times as factors, one for each source of errors, and notes on what is left out.

    The range of a factor is what the step times of the scenario can be, by the published error of their presets:
    ``1 - e`` to ``1 + e`` times as long. Which error applies is told by a run of the scenario.

    Parameters
    ----------
    scenario : ResolvedScenario
    axes : sequence of Axis
        The other factors.
    where : Executor
        Where the run is made.
    """
    own = [axis.key for axis in axes if axis.path[-1] == KEY]
    if own:
        return (), (f"the published error of the step times is left out: {own[0]} is given",)
    if not any(map(error_source, scenario.policies)):
        return (), ("the error of the step times is left out: no policy has those of a preset",)
    result = run(scenario.with_(replications=1, precision=None), workers=where)
    found = Errors(published_errors(result), {policy.name: error_source(policy) for policy in scenario.policies})
    notes = (found.unknown_note.replace("no published error:", "no error of the step times is varied:"),)
    sources: dict[tuple[str, ...], list[ResolvedPolicy]] = {}
    for policy in scenario.policies:
        if found.known[policy.name].share:
            sources.setdefault(found.sources[policy.name], []).append(policy)
    made = tuple(_of_source(scenario, found, policies, alone=len(sources) == 1) for policies in sources.values())
    return made, tuple(filter(None, notes))


def _of_source(
    scenario: ResolvedScenario, errors: Errors, policies: Sequence[ResolvedPolicy], *, alone: bool
) -> Factor:
    names = [policy.name for policy in policies]
    axes = tuple(_axis(scenario, name, errors.factor(name, -1), errors.factor(name, 1)) for name in names)
    return Factor(KEY if alone else f"{KEY} of {', '.join(names)}", axes, (False,) * len(axes))


def _axis(scenario: ResolvedScenario, policy: str, low: float, high: float) -> Axis:
    """Return the axis of a policy's factor around its own one."""
    values = scenario.values["policies"][policy]
    groups = (values["fleet"] or {}).get("groups") or {}
    own = values[KEY]
    other = next((name for name, group in groups.items() if group[KEY] != own), None)
    if other is not None:
        raise InputError(
            f"policy {policy}: group {other} of its replicas has a {KEY} of its own, so that the error of its step "
            "times cannot be varied by one key; leave it out (--no-model-error), or vary it yourself (--over)"
        )
    place = f"{KEY} of {policy}"
    return axis_of(f"policies.{policy}.{KEY}", f"{own * low:.15g}:{own * high:.15g}", place)
