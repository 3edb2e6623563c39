"""``simqueue validate``: check scenario files without running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from simqueue.cli.common import Debug, Seed, Set, console
from simqueue.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

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
        except InputError as error:
            errors.append(str(error))
            continue
        typer.echo(f"{file}: OK ({', '.join(scenario.policies)})")
        values = resolved(scenario)
        console().print(_policies_table(values))
        for source in _sources(values):
            typer.echo(f"  from {source}")
    if errors:
        raise InputError("\n".join(errors))


def _sources(values: dict[str, Any]) -> list[str]:
    """Return the packages that version defaults were read in, each once."""
    origins = values["origin"].values()
    return list(dict.fromkeys(origin.removeprefix(VERSION) for origin in origins if origin.startswith(VERSION)))


def _policies_table(values: dict[str, Any]) -> Table:
    """Return one row a key and one column a policy; what is no default says where it was written."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    flat = {name: _flat(policy) for name, policy in values["policies"].items()}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("key")
    for name in flat:
        table.add_column(name, overflow="fold")
    for key in dict.fromkeys(key for policy in flat.values() for key in policy):
        cells = []
        for name, policy in flat.items():
            origin = values["origin"].get(f"policies.{name}.{key}", "")
            if origin.startswith(VERSION):  # which package; its files are listed below the table
                origin = origin.removeprefix(VERSION).partition(":")[0]
            shown = "null" if policy.get(key) is None else str(policy[key])
            cells.append(Text("" if key not in policy else f"{shown} ({origin})"))
        table.add_row(key, *cells)
    return table


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = inner
    return flat
