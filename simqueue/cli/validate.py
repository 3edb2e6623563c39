"""``simqueue validate``: check scenario files without running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from simqueue.cli.common import Debug, Seed, Set, console
from simqueue.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from simqueue.scenario import Scenario


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
    from simqueue.scenario import load
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
        console().print(_policies_table(scenario))
    if errors:
        raise InputError("\n".join(errors))


def _policies_table(scenario: Scenario) -> Table:
    """Return one row a key and one column a policy; what is no default says where it was written."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from simqueue.scenario import resolved

    values = resolved(scenario)
    flat = {name: _flat(policy) for name, policy in values["policies"].items()}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("key")
    for name in flat:
        table.add_column(name, overflow="fold")
    for key in dict.fromkeys(key for policy in flat.values() for key in policy):
        cells = []
        for name, policy in flat.items():
            origin = values["origin"].get(f"policies.{name}.{key}", "")
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
