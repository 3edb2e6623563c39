"""``simqueue validate`` and ``schema``: scenario files, without a run."""

from __future__ import annotations

import json
from collections.abc import Mapping

import typer

from simqueue.cli.actions.common import load_scenario, print_warnings, say
from simqueue.cli.actions.values_table import VERSION, policies_table
from simqueue.cli.columns import terminal_width
from simqueue.errors import InputError, Problem
from simqueue.scenario.library import find
from simqueue.scenario.reference import reference_page
from simqueue.scenario.schema import json_schema


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
    for line in policies_table(scenario, terminal_width()):
        typer.echo(line)
    for source in _sources(scenario.origins):
        typer.echo(f"  from {source}")


def _sources(origins: Mapping[str, str]) -> list[str]:
    """Return the packages that the defaults of engine versions come from, each once."""
    versions = [origin for origin in origins.values() if origin.startswith(VERSION)]
    return list(dict.fromkeys(origin.removeprefix(VERSION) for origin in versions))
