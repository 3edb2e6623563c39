"""``simqueue explain SCENARIO``: the fleet of each policy, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import typer

from simqueue.cli.actions.common import load_scenario, print_json, print_warnings, say
from simqueue.cli.columns import Row, listed, terminal_width
from simqueue.errors import InputError
from simqueue.scenario import ResolvedPolicy, ResolvedScenario
from simqueue.scenario.resolved_fleet import ResolvedFleet, ResolvedGroup

_APART = ("groups", "replicas", "signals", "events")
"""Keys of a fleet that are not in the table of keys."""
_WORDS = {None: "null", True: "true", False: "false"}


def explain_fleet(argument: str, overrides: list[str] | None, *, as_json: bool) -> None:
    """Print the fleets of a scenario's policies, as tables or as JSON."""
    scenario = load_scenario(argument, overrides, None).resolve()
    fleets = {policy.name: policy.fleet for policy in scenario.policies}
    if not any(fleets.values()):
        raise InputError(
            f"{argument}: no policy has a fleet; give one with fleet: {{replicas: N}}, or --model and --gpu"
        )
    if as_json:
        print_json({name: fleet and _tables(scenario, name, fleet) for name, fleet in fleets.items()})
        return
    print_warnings(scenario.warnings)
    for name, fleet in fleets.items():
        if fleet is None:
            say(f"{name}: one replica, without a router")
        else:
            _print(name, fleet, _tables(scenario, name, fleet))


def _print(name: str, fleet: ResolvedFleet, tables: Mapping[str, list[Row]]) -> None:
    summary = type(fleet.make_router(Random(0))).summary
    count = "1 replica" if fleet.replicas == 1 else f"{fleet.replicas:,} replicas"
    say(f"{name}: {count} behind {fleet.router}: {summary}")
    for rows in tables.values():
        for line in listed(rows, terminal_width()) if rows else ():
            typer.echo(f"  {line}")
        if rows:
            typer.echo("")


def _tables(scenario: ResolvedScenario, name: str, fleet: ResolvedFleet) -> dict[str, list[Row]]:
    values, above = scenario.values["policies"][name]["fleet"], f"policies.{name}.fleet."
    origins = {key.removeprefix(above): origin for key, origin in scenario.origins.items() if key.startswith(above)}
    return {
        "replicas": [_of_group(group) for group in fleet.groups],
        "signals": list(_signals(fleet, origins)),
        "keys": list(_keys({key: value for key, value in values.items() if key not in _APART}, origins)),
        "events": list(_events(fleet)),
    }


def _of_group(group: ResolvedGroup) -> Row:
    policy = group.policy
    return {
        "group": group.name,
        "replicas": group.replicas,
        "weight": group.weight,
        "runs": policy.scheduler if policy.engine is None else policy.engine.title,
        "gpu": _hardware(policy),
        "KV pool (tokens)": policy.kv_cache.tokens,
        "longest request (tokens)": policy.longest_request_tokens,
    }


def _hardware(policy: ResolvedPolicy) -> str | None:
    if policy.gpu is None:
        return None
    return policy.gpu.name if policy.tensor_parallel == 1 else f"{policy.tensor_parallel} x {policy.gpu.name}"


def _signals(fleet: ResolvedFleet, origins: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per signal that has an age, and whether the router reads it."""
    reads = fleet.make_router(Random(0)).reads
    for signal, age in fleet.ages.items():
        found = [origins[f"signals.{signal.value}.{key}"] for key in ("every_s", "delay_s")]
        yield {
            "signal": signal.value,
            "read": "yes" if signal in reads else "no",
            "every (s)": age.every_s,
            "delay (s)": age.delay_s,
            "from": " and ".join(dict.fromkeys(found)),
        }


def _keys(values: Mapping[str, Any], origins: Mapping[str, str], above: str = "") -> Iterator[Row]:
    """Yield one row per key of the router and of what happens after failures."""
    for key, value in values.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and value:
            yield from _keys(value, origins, f"{path}.")
        else:
            shown = _WORDS[value] if value is None or isinstance(value, bool) else str(value)
            yield {"key": path, "value": shown, "from": origins[path]}


def _events(fleet: ResolvedFleet) -> Iterator[Row]:
    for event in fleet.events:
        yield {
            "at (s)": event.at_s,
            "replica": fleet.names[event.replica],
            "event": event.kind,
            "repair (s)": event.repair_s,
            "deadline (s)": event.deadline_s,
        }
