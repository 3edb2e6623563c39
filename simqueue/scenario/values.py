"""The values of a resolved scenario as JSON has them, and where each of them comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from simqueue.errors import KeyPath
from simqueue.scenario.fleet_values import fleet_origin, fleet_values
from simqueue.scenario.policy_values import computed_origins, given_values, origin_of, policy_values

if TYPE_CHECKING:
    from simqueue.scenario.model import Scenario
    from simqueue.scenario.systems import System


def values_of(scenario: Scenario, systems: Iterable[System]) -> dict[str, Any]:
    """Return every value of a scenario as JSON has it.

    Policies are complete: each has every key that it uses. Of a policy with groups, the groups are complete, and its
    other keys are as they were given.
    """
    values = scenario.model_dump(mode="json", by_alias=True, exclude={"policies"})
    values["policies"] = {system.policy.name: _system_values(scenario, system) for system in systems}
    return values


def origins_of(values: Mapping[str, Any], scenario: Scenario, systems: Iterable[System]) -> dict[str, str]:
    """Return where each value comes from, by its dotted path."""
    by_name = {system.policy.name: system for system in systems}
    origins = {dotted(path): _origin(scenario, path, by_name) for path in leaves(values)}
    for name, system in by_name.items():
        above = f"policies.{name}"
        if not system.groups:
            origins |= _below(above, computed_origins(scenario, name))
        for group_name, group in system.groups.items():
            found = computed_origins(group.scenario, name) | dict(group.measured)
            origins |= _below(f"{above}.fleet.groups.{group_name}", found)
    return origins


def dotted(path: KeyPath) -> str:
    """Return a path as one text."""
    return ".".join(map(str, path))


def leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of all values; a list counts as one value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path


def _system_values(scenario: Scenario, system: System) -> dict[str, Any]:
    policy = system.policy
    own = given_values(scenario, policy.name) if system.groups else policy_values(scenario, policy)
    return own | {"fleet": fleet_values(system)}


def _origin(scenario: Scenario, path: KeyPath, systems: Mapping[str, System]) -> str:
    if path[0] != "policies":
        return origin_of(scenario.written, path, None)
    system = systems[str(path[1])]
    if path[2] == "fleet":
        return fleet_origin(system, path)
    return origin_of(scenario.written, path, None if system.groups else system.policy.engine)


def _below(above: str, origins: Mapping[str, str]) -> dict[str, str]:
    return {f"{above}.{path}": origin for path, origin in origins.items()}
