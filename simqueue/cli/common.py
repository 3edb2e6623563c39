"""What several commands share: their options, and the consoles they print to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a value, stronger than the file; repeatable. Example: --set workload.arrivals.rate_rps=20",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed, in place of the scenario's.")]
Replications = Annotated[
    int | None,
    typer.Option(
        "--replications",
        metavar="N",
        help="Independent runs of every policy, in place of the scenario's replications and precision.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Processes that share replications. Default: the number of cores."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_PIPED_COLUMNS = 120


def replicated(overrides: Iterable[str], replications: int | None) -> list[str]:
    """Return the overrides with a number of replications added, if one was asked for."""
    if replications is None:
        return list(overrides)
    return [*overrides, "precision=null", f"replications={replications}"]


def console() -> Console:
    """Return a console on stdout; piped output gets a fixed width, so that it is the same everywhere."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_COLUMNS
    return Console(file=sys.stdout, width=width, highlight=False)
