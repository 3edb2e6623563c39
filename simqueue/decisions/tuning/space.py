"""The space of a search: which keys of a system vary, and which values each of them can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from simqueue.errors import InputError, show
from simqueue.names import unknown
from simqueue.scenario.load import Source
from simqueue.scenario.model import Scenario
from simqueue.scenario.overrides import Override, apply
from simqueue.scenario.policies import policy_class
from simqueue.scenario.written import look_up
from simqueue.sweeps.axes import Axis, axes_of, parse_axis
from simqueue.sweeps.cells import Cells

_OPTION: Final = "--space"
_FIXED: Final = {
    **dict.fromkeys(("workload", "workloads", "seed"), "the traffic is the scenario's, the same for all candidates"),
    **dict.fromkeys(
        ("horizon_s", "warmup_s", "replications", "precision", "slo", "summary", "name", "fast"),
        "how runs are made and measured is the same for all candidates",
    ),
}
"""Top-level keys that cannot vary, and why."""


@dataclass(frozen=True)
class Space:
    """The keys that vary, and the scenario that they are keys of.

    Attributes
    ----------
    cells : Cells
        Makes the scenarios.
    policy : str
        The policy that is changed; all others are left out.
    """

    cells: Cells
    policy: str

    @property
    def axes(self) -> tuple[Axis, ...]:
        """One per key."""
        return self.cells.axes

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of the axes, without the policy that they belong to."""
        own = f"policies.{self.policy}."
        return tuple(axis.key.removeprefix(own) for axis in self.axes)


def space_of(
    source: Source, axes: Sequence[Axis], *, policy: str | None = None, overrides: Sequence[Override] = ()
) -> Space:
    """Return the space of a search.

    Parameters
    ----------
    source : Source
        The scenario.
    axes : sequence of Axis
        A key of the policy needs no ``policies.NAME.`` before it.
    policy : str, optional
        The policy that is changed. By default the only one.
    overrides : sequence of Override
        Of all systems.

    Raises
    ------
    InputError
        If the scenario or an axis is wrong.
    """
    if not axes:
        raise InputError(f"{_OPTION}: give at least one key and its values, such as tensor_parallel=1,2,4")
    data, _ = apply(source.document.data, overrides)
    name = _policy(data, policy)
    owned = tuple(_own(axis, data, name) for axis in axes)
    for axis in owned:
        _check(axis, data, name)
    cells = Cells(_alone(source, data, name), tuple(overrides), owned)
    cells.check()
    return Space(cells, name)


def axes_in(space: Sequence[str] | Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of ``KEY=VALUES`` texts, or of a mapping of keys to values.

    Raises
    ------
    InputError
        If they are not written so.
    """
    if isinstance(space, Mapping):
        return axes_of(space, "space")
    if isinstance(space, str):
        raise InputError(f"space = {show(space)}: must be a list of texts or a mapping")
    return tuple(parse_axis(text, _OPTION) for text in space)


def _policy(data: Mapping[str, Any], chosen: str | None) -> str:
    """Return the policy that is changed."""
    policies = data.get("policies")
    names = list(policies) if isinstance(policies, dict) else []
    if chosen is not None:
        if chosen not in names:
            raise InputError(f"--policy: {unknown('policy', chosen, names)}")
        return chosen
    if len(names) > 1:
        raise InputError(f"--policy: the scenario has {len(names)} policies; name one of them: {', '.join(names)}")
    if not names:
        raise InputError("policies: this key is missing")
    return str(names[0])


def _own(axis: Axis, data: Mapping[str, Any], policy: str) -> Axis:
    """Return an axis with the whole path of its key, if that is a key of the policy."""
    first, entry = str(axis.path[0]), data["policies"][policy]
    own = _keys_of(entry)
    if first in Scenario.model_fields or not own:
        return axis
    if first not in own:
        raise InputError.at(axis.place, unknown("key", first, sorted({*own, *Scenario.model_fields} - set(_FIXED))))
    return replace(axis, key=f"policies.{policy}.{axis.key}")


def _keys_of(entry: Any) -> frozenset[str]:
    """Return the keys that a policy can have; none if it names no scheduler, which is reported with the scenario."""
    try:
        fields = policy_class(entry).model_fields if isinstance(entry, dict) else {}
    except ValueError:
        return frozenset()
    return frozenset(field.alias or key for key, field in fields.items())


def _check(axis: Axis, data: Mapping[str, Any], policy: str) -> None:
    """Check that a key is one of a system, and that there are prices if GPUs vary."""
    path = axis.path
    if path[0] in _FIXED:
        raise InputError.at(axis.place, f"{path[0]} cannot vary: {_FIXED[str(path[0])]}")
    if path[0] == "policies" and path[1] not in (policy, "*"):
        raise InputError.at(axis.place, f"only policy {policy} varies; another one is --policy")
    if path[-1] != "gpu" or len(axis.values if isinstance(axis.values, tuple) else ()) < 2:
        return
    for above in ((), ("policies", policy), path[:-1]):
        price = look_up(data, (*above, "usd_per_gpu_hour"))[1]
        if isinstance(price, int | float):
            text = f"usd_per_gpu_hour: {price:g} is the price of one GPU, and several vary; give GPU -> price instead"
            raise InputError.at(axis.place, text)


def _alone(source: Source, data: Mapping[str, Any], policy: str) -> Source:
    """Return the source without the other policies, which need not be settled for each candidate."""
    policies = source.document.data.get("policies")
    kept = {policy: policies[policy]} if isinstance(policies, dict) and policy in policies else data["policies"]
    return replace(source, document=replace(source.document, data={**source.document.data, "policies": kept}))
