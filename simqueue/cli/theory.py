"""``simqueue theory``: closed forms on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from simqueue.cli.common import Debug, console
from simqueue.errors import InputError
from simqueue.names import unknown


def theory(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A formula; without it all are listed.")] = None,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Its parameters; without them they are listed.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Evaluate a closed form of queueing theory. Rates are per second and times in seconds."""
    from simqueue.theory.catalog import FORMULAS, evaluate, first_line, parameters

    if name is None:
        _print_pairs([(known, first_line(formula)) for known, formula in FORMULAS.items()])
        return
    if name not in FORMULAS:
        raise InputError(f"theory: {unknown('formula', name, FORMULAS)}")
    if not values:
        typer.echo(first_line(FORMULAS[name]))
        _print_pairs(list(parameters(FORMULAS[name]).items()))
        return
    found = evaluate(name, dict(_parsed(text) for text in values))
    if json_:
        import json

        typer.echo(json.dumps(found))
        return
    _print_pairs([(key, f"{value:.8g}") for key, value in found.items()])


def _parsed(text: str) -> tuple[str, float]:
    key, sign, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        shown = f"{key} = '{value}'" if sign else f"'{text}'"
        raise InputError(f"theory: {shown}: write KEY=NUMBER, such as arrival_rate=0.8") from None


def _print_pairs(pairs: list[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for pair in pairs:
        table.add_row(*(Text(text) for text in pair))  # as it is: M/M^[1,b]/1 is no markup
    console().print(table)
