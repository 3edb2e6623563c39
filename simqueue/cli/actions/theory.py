"""``simqueue theory``: evaluate formulas of queueing theory."""

from __future__ import annotations

import json
import math
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from simqueue.cli.actions.screen import console
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.theory.catalog import FORMULAS, description, evaluate, explained


def theory(name: str | None, values: list[str] | None, json_: bool) -> None:
    """List the formulas, list the parameters of one, or evaluate it."""
    if name is None:
        _print_pairs([(known, description(formula)) for known, formula in FORMULAS.items()])
        return
    if name not in FORMULAS:
        raise InputError(f"theory: {unknown('formula', name, FORMULAS)}")
    if not values:
        typer.echo(description(FORMULAS[name]))
        _print_pairs(list(explained(FORMULAS[name]).items()))
        return
    found = evaluate(name, dict(_parsed(name, text) for text in values))
    if json_:
        typer.echo(json.dumps(_as_json(found), allow_nan=False))
        return
    _print_pairs([(key, "infinite" if value == math.inf else f"{value:.8g}") for key, value in found.items()])


def _as_json(found: dict[str, float]) -> dict[str, Any]:
    """Return the results; those that are infinite are null, and named under ``infinite``: JSON has no such number."""
    infinite = [key for key, value in found.items() if value == math.inf]
    numbers = {key: None if key in infinite else value for key, value in found.items()}
    return {**numbers, "infinite": infinite} if infinite else numbers


def _parsed(formula: str, text: str) -> tuple[str, float]:
    key, sign, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        shown = f"{key} = '{value}'" if sign else f"'{text}'"
        raise InputError(f"{formula}: {shown}: must be KEY=NUMBER, for example arrival_rate=0.8") from None


def _print_pairs(pairs: list[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for pair in pairs:
        table.add_row(*(Text(text) for text in pair))  # Text: the brackets of M/M^[1,b]/1 are not markup
    console().print(table)
