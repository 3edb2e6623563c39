"""``simqueue validate`` and ``schema``: scenario files, without a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from simqueue.cli.actions.common import load_scenario, print_warnings, say
from simqueue.cli.columns import listed, terminal_width
from simqueue.errors import InputError, Problem
from simqueue.scenario import ResolvedScenario
from simqueue.scenario.library import find
from simqueue.scenario.reference import reference_page
from simqueue.scenario.room import Room, room
from simqueue.scenario.schema import json_schema

_VERSION = "version: "
"""Prefix of the origin of a default that depends on the version of an engine."""


def schema(reference: bool) -> None:
    """Print the JSON Schema of scenarios, or the reference of their keys."""
    typer.echo(reference_page() if reference else json.dumps(json_schema(), indent=2), nl=not reference)


def validate(scenarios: list[str], set_: list[str] | None, seed: int | None) -> None:
    """Print what each policy runs with, for each scenario; raise the errors of all scenarios together."""
    problems: list[Problem] = []
    for argument in scenarios:
        try:
            _validate(argument, set_, seed)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError.of(problems)


def _validate(argument: str, overrides: list[str] | None, seed: int | None) -> None:
    scenario = load_scenario(argument, overrides, seed).resolve()
    scenario.check_traffic()  # reads trace files and checks that they have enough requests
    say(f"{find(argument)}: OK ({', '.join(scenario.policy_names)})")
    print_warnings(scenario.warnings)
    for line in _policies_table(scenario, terminal_width()):
        typer.echo(line)
    for source in _sources(scenario.origins):
        typer.echo(f"  from {source}")


def _sources(origins: Mapping[str, str]) -> list[str]:
    """Return the packages that the defaults of engine versions come from, each once."""
    versions = [origin for origin in origins.values() if origin.startswith(_VERSION)]
    return list(dict.fromkeys(origin.removeprefix(_VERSION) for origin in versions))


def _policies_table(scenario: ResolvedScenario, width: int | None) -> list[str]:
    """Return one line per key and one column per policy, each value with its origin.

    On a terminal, as many policies as fit are side by side, and the others follow below. Otherwise all are side by
    side.
    """
    flat = {name: _flat(policy) for name, policy in scenario.values["policies"].items()}
    named = list(dict.fromkeys(key for policy in flat.values() for key in policy))
    cells = {name: {key: _cell(scenario.origins, name, key, policy) for key in named} for name, policy in flat.items()}
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


def _cell(origins: Mapping[str, str], name: str, key: str, policy: dict[str, Any]) -> str:
    """Return a value of a policy with its origin."""
    if key not in policy:
        return ""
    origin = origins.get(f"policies.{name}.{key}", "")
    if origin.startswith(_VERSION):  # only the package; its files are listed below the table
        origin = origin.removeprefix(_VERSION).partition(":")[0]
    return f"{'null' if policy[key] is None else policy[key]} ({origin})"


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
