"""``simqueue validate``: check scenario files without running them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from simqueue.cli.columns import listed, terminal_width
from simqueue.cli.common import Debug, Seed, Set
from simqueue.errors import InputError

VERSION = "version: "
"""How the origin of an engine version's default begins."""


def validate(
    scenarios: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Scenario files, or names of packaged ones.")
    ],
    set_: Set = None,
    seed: Seed = None,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Check scenarios without running them.

    Prints OK and what each policy runs with, or one line for each error.
    """
    from simqueue.scenario import load, resolved
    from simqueue.scenario.library import find

    errors = []
    for argument in scenarios:
        try:
            file = find(argument)
            scenario = load(file, set_ or (), seed)
            scenario.check_traffic()  # reads its files, and finds out whether they hold as much as is asked for
        except InputError as error:
            errors.append(str(error))
            continue
        typer.echo(f"{file}: OK ({', '.join(scenario.policies)})")
        values = resolved(scenario)
        for line in _policies_table(values, terminal_width()):
            typer.echo(line)
        for source in _sources(values):
            typer.echo(f"  from {source}")
    if errors:
        raise InputError("\n".join(errors))


def _sources(values: dict[str, Any]) -> list[str]:
    """Return the packages that version defaults were read in, each once."""
    origins = values["origin"].values()
    return list(dict.fromkeys(origin.removeprefix(VERSION) for origin in origins if origin.startswith(VERSION)))


def _policies_table(values: dict[str, Any], width: int | None) -> list[str]:
    """Return one line a key and one column a policy; what is no default says where it was written.

    On a terminal there are as many policies side by side as fit, the others below; elsewhere all are side by side.
    """
    flat = {name: _flat(policy) for name, policy in values["policies"].items()}
    keys = list(dict.fromkeys(key for policy in flat.values() for key in policy))
    cells = {name: {key: _cell(values, name, key, policy) for key in keys} for name, policy in flat.items()}
    lines: list[str] = []
    names = list(flat)
    while names:
        count = len(names)
        while count > 1 and width is not None and _wide(keys, names[:count], cells) > width:
            count -= 1
        block, names = names[:count], names[count:]
        lines += ["", *listed([{"key": key} | {name: cells[name][key] for name in block} for key in keys], None)]
    return lines


def _wide(keys: list[str], names: list[str], cells: dict[str, dict[str, str]]) -> int:
    """Return how many characters a block of policies takes in a line."""
    return max(map(len, keys)) + sum(2 + max(len(name), *map(len, cells[name].values())) for name in names)


def _cell(values: dict[str, Any], name: str, key: str, policy: dict[str, Any]) -> str:
    """Return a policy's value with where it comes from."""
    if key not in policy:
        return ""
    origin = values["origin"].get(f"policies.{name}.{key}", "")
    if origin.startswith(VERSION):  # which package; its files are listed below the table
        origin = origin.removeprefix(VERSION).partition(":")[0]
    return f"{'null' if policy[key] is None else policy[key]} ({origin})"


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = inner
    return flat
