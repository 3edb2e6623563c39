"""The table of ``simqueue validate``: what each policy runs with, and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simqueue.cli.columns import listed
from simqueue.scenario import ResolvedScenario
from simqueue.scenario.room import Room, room

VERSION = "version: "
"""Prefix of the origin of a default that depends on the version of an engine."""
_GROUPS = "fleet.groups."
_OF_GROUP = ("replicas", "weight")


def policies_table(scenario: ResolvedScenario, width: int | None) -> list[str]:
    """Return one line per key and one column per policy, each value with its origin.

    On a terminal, as many policies as fit are side by side, and the others follow below. Otherwise all are side by
    side.
    """
    cells = {name: _cells(scenario, name) for name in scenario.policy_names}
    named = list(dict.fromkeys(key for found in cells.values() for key in found))
    rooms = {name: _rooms(policy) for name, policy in scenario.values["policies"].items()}
    keys = [*named, *dict.fromkeys(key for found in rooms.values() for key in found)]
    cells = {name: dict.fromkeys(keys, "") | cells[name] | rooms[name] for name in cells}
    lines: list[str] = []
    for block in _blocks(keys, cells, width):
        lines += ["", *listed([{"key": key} | {name: cells[name][key] for name in block} for key in keys], None)]
    return lines


def _blocks(keys: list[str], cells: dict[str, dict[str, str]], width: int | None) -> Iterator[list[str]]:
    """Yield the names of policies that are side by side: all of them, or as many as fit."""
    names = list(cells)
    while names:
        count = len(names)
        while count > 1 and width is not None and _wide(keys, names[:count], cells) > width:
            count -= 1
        yield names[:count]
        names = names[count:]


def _wide(keys: list[str], names: list[str], cells: dict[str, dict[str, str]]) -> int:
    """Return the width in characters of a block of policies."""
    return max(map(len, keys)) + sum(2 + max(len(name), *map(len, cells[name].values())) for name in names)


def _cells(scenario: ResolvedScenario, name: str) -> dict[str, str]:
    """Return the values of a policy with their origins.

    A policy with groups has what all of them have in common, and then what is different.
    """
    policy = scenario.values["policies"][name]
    flat = {key: _cell(value, scenario.origins[f"policies.{name}.{key}"]) for key, value in _flat(policy).items()}
    groups = (policy["fleet"] or {}).get("groups") or {}
    if not groups:
        return flat
    own = {group: {key: flat.pop(f"{_GROUPS}{group}.{key}") for key in _flat(keys)} for group, keys in groups.items()}
    every = [key for key in dict.fromkeys(key for one in own.values() for key in one) if key not in _OF_GROUP]
    found = {key: [one.get(key, "") for one in own.values()] for key in every}
    alike = {key: cells[0] for key, cells in found.items() if cells.count(cells[0]) == len(cells)}
    return (
        {key: alike.get(key, "by group") for key in every}
        | {key: cell for key, cell in flat.items() if key.startswith("fleet.")}
        | {
            f"{_GROUPS}{group}.{key}": cell
            for group, one in own.items()
            for key, cell in one.items()
            if key not in alike
        }
    )


def _cell(value: Any, origin: str) -> str:
    """Return a value with its origin."""
    if origin.startswith(VERSION):  # only the package; its files are listed below the table
        origin = origin.removeprefix(VERSION).partition(":")[0]
    return f"{'null' if value is None else value} ({origin})"


def _rooms(policy: Mapping[str, Any]) -> dict[str, str]:
    """Return what a policy has room for, or each of its groups, which no key says."""
    groups = (policy["fleet"] or {}).get("groups")
    if not groups:
        return _room(room(policy))
    return {f"{name}: {key}": text for name, group in groups.items() for key, text in _room(room(group)).items()}


def _room(found: Room) -> dict[str, str]:
    rows = {"KV pool (tokens)": found.pool_tokens, "longest request (tokens)": found.longest_request_tokens}
    return {key: "-" if tokens is None else f"{tokens:,}" for key, tokens in rows.items()}


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = inner
    return flat
