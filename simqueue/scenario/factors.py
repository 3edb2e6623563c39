"""A resolved scenario with other step times: each policy's own, multiplied by a factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simqueue.steptime.scaled import scaled

if TYPE_CHECKING:
    from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario

KEY = "step_time_factor"


def with_factors(scenario: ResolvedScenario, factors: Mapping[str, float]) -> ResolvedScenario:
    """Return a scenario whose policies have all their step times multiplied, in every group of their replicas.

    Parameters
    ----------
    scenario : ResolvedScenario
    factors : mapping of str to float
        By policy, each > 0; a factor of the scenario is multiplied by it. Policies that are left out stay as they are.

    Returns
    -------
    ResolvedScenario
        Its values are a scenario again, with other values of `step_time_factor`.

    Raises
    ------
    InputError
        The scenario has no such policy.
    """
    names = {scenario.policy(name).name for name in factors}
    policies = tuple(
        _slowed(policy, factors[policy.name]) if policy.name in names else policy for policy in scenario.policies
    )
    values = {
        name: _slowed_values(own, factors[name]) if name in names else own
        for name, own in scenario.values["policies"].items()
    }
    return replace(scenario, policies=policies, values={**scenario.values, "policies": values})


def _slowed(policy: ResolvedPolicy, factor: float) -> ResolvedPolicy:
    fleet = policy.fleet
    if fleet is not None:
        groups = tuple(replace(group, policy=_slowed(group.policy, factor)) for group in fleet.groups)
        fleet = replace(fleet, groups=groups)
    return replace(policy, step_time=scaled(policy.step_time, factor), fleet=fleet)


def _slowed_values(values: Mapping[str, Any], factor: float) -> dict[str, Any]:
    fleet = values.get("fleet")
    if fleet and fleet.get("groups"):
        groups = {name: _slowed_values(own, factor) for name, own in fleet["groups"].items()}
        fleet = {**fleet, "groups": groups}
    own = {**values, KEY: values[KEY] * factor}
    return own | {"fleet": fleet} if "fleet" in values else own
