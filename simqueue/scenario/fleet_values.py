"""The values of a fleet as JSON has them, and where each of them comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simqueue.errors import KeyPath
from simqueue.routing import Signal
from simqueue.scenario.fleet import FleetSettings
from simqueue.scenario.policy_values import DEFAULT, origin_of, policy_values, version_source, written_origin
from simqueue.scenario.resolve_fleet import completed
from simqueue.scenario.written import SYSTEM_KEYS

if TYPE_CHECKING:
    from simqueue.scenario.systems import GroupOfSystem, System

_OF_GROUP = ("replicas", "weight")


def fleet_values(system: System) -> dict[str, Any] | None:
    """Return every value of a fleet; None without one. Its groups are complete: each has every key that it uses."""
    if system.fleet is None:
        return None
    values = completed(system.fleet).model_dump(mode="json", by_alias=True)
    for name, group in system.groups.items():
        own = values["groups"][name]
        values["groups"][name] = {key: own[key] for key in _OF_GROUP} | policy_values(group.scenario, group.policy)
    return values


def parts_of_values(name: str, policy: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what the replicas of a policy run, by name: each group, or the policy itself without groups.

    Parameters
    ----------
    name : str
    policy : mapping
        Its values in a resolved scenario, as JSON has them.
    """
    groups = (policy.get("fleet") or {}).get("groups") or {}
    return [(f"{name}, {group}", values) for group, values in groups.items()] or [(name, policy)]


def fleet_origin(system: System, path: KeyPath) -> str:
    """Return where a value of a fleet comes from; `path` starts at the top of the scenario."""
    rest = path[3:]
    if rest[:1] == ("groups",) and len(rest) > 2 and rest[2] not in _OF_GROUP:
        return _of_group(system.groups[str(rest[1])], rest[2:])
    found = origin_of(system.written, path, None)
    if found != DEFAULT or not rest or system.fleet is None:
        return found
    return _of_router(system, system.fleet, path) or DEFAULT


def _of_router(system: System, fleet: FleetSettings, path: KeyPath) -> str | None:
    """Return where a value comes from that was not written down as it is; None: a plain default."""
    router, (key, *inner) = fleet.given_router.router_class, path[3:]
    if (key, *inner) == ("router", "kind"):  # the name of the router alone
        return origin_of(system.written, path[:-1], None)
    if key == "signals" and len(inner) == 2:
        return _of_signals(system, fleet, path)
    own = router.recovery
    has_own = {
        "retries": own.retries > 0,
        "health": own.check_every_s is not None,
        "breaker": own.breaker_failures is not None,
    }
    if key not in has_own or not own.source:
        return None
    is_given = getattr(fleet, str(key)) is not None
    return f"router: {own.source}" if has_own[str(key)] or not is_given else None


def _of_signals(system: System, fleet: FleetSettings, path: KeyPath) -> str | None:
    """Return where the age of a signal comes from that it has not got itself; None: a plain default."""
    signal, key = Signal(str(path[4])), str(path[5])
    if getattr(fleet.signals, key, None) is not None:
        return origin_of(system.written, (*path[:4], key), None)
    return f"router: {fleet.given_router.kind}" if signal in fleet.given_router.router_class.ages else None


def _of_group(group: GroupOfSystem, key: KeyPath) -> str:
    """Return where a value of a group comes from: the group, its policy, the scenario, a version, or a default."""
    written, policy, engine = group.scenario.written, group.policy.name, group.policy.engine
    place = written.group
    given = written_origin(written, (*place, *key))
    if given is not None:
        return given if given.startswith("--") else "group"
    replaced = key[0] != "kv_cache" and written.has((*place, key[0]))
    if replaced or (group.is_other and key[0] not in SYSTEM_KEYS):
        return version_source(engine, key) or DEFAULT
    return origin_of(written, ("policies", policy, *key), engine)
