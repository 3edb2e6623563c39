"""``simqueue schema``: what a scenario file may contain, for editors and for people."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def schema(
    reference: Annotated[
        bool, typer.Option("--reference", help="Print the reference of all keys (Markdown) instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of a scenario file."""
    from simqueue.scenario.reference import reference_page
    from simqueue.scenario.schema import json_schema

    typer.echo(reference_page() if reference else json.dumps(json_schema(), indent=2), nl=not reference)
