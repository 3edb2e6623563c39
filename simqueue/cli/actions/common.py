"""What several actions share: loading scenarios, and printing without tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import typer

from simqueue.scenario import Scenario, load
from simqueue.scenario.library import find


def load_scenario(
    argument: str, overrides: Iterable[str] | None, seed: int | None, replications: int | None = None
) -> Scenario:
    """Load a scenario file, or a packaged scenario by its name.

    Parameters
    ----------
    argument : str
        A path or a name.
    overrides : iterable of str, optional
        ``KEY=VALUE``, as given with ``--set``.
    seed, replications : int, optional
        Override the values of the scenario.
    """
    given = list(overrides or ())
    if replications is not None:
        given += ["precision=null", f"replications={replications}"]
    return load(find(argument), given, seed)


def print_json(content: Any) -> None:
    """Print one strict JSON object."""
    typer.echo(json.dumps(content, allow_nan=False))


def print_warnings(lines: Iterable[str]) -> None:
    """Print one line per warning."""
    for line in lines:
        typer.echo(f"warning: {line}")
