"""The typer application that all commands hang on."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

COMMANDS = (
    "run",
    "init",
    "validate",
    "schema",
    "compare",
    "capacity",
    "theory",
    "explain",
    "calibrate",
    "report",
    "verify",
    "workload",
)
"""Each is a function in the module of its name, in the order of the help."""

GROUPS = {"list": "listing"}
"""Name of a group of commands -> the module whose `app` it is."""


def application(first: str | None) -> typer.Typer:
    """Return the application for arguments that begin with `first`.

    If that names a command or a group, it is the only one there: the others need not be loaded to run it.
    """
    app = typer.Typer(
        help="A discrete-event laboratory for LLM inference serving.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(epilog="Start with: simqueue init first.yaml && simqueue run first.yaml")(simqueue)
    everything = first not in (*COMMANDS, *GROUPS)
    for name in COMMANDS:
        if everything or name == first:
            app.command(name)(getattr(import_module(f"simqueue.cli.{name}"), name))
    for name, module in GROUPS.items():
        if everything or name == first:
            app.add_typer(import_module(f"simqueue.cli.{module}").app, name=name)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from simqueue import __compiled__, __version__

        typer.echo(f"simqueue {__version__}, {'compiled' if __compiled__ else 'pure Python'}")
        raise typer.Exit


def simqueue(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version, and whether the engine is compiled.",
        ),
    ] = False,
) -> None:
    """Play the same traffic through one or several LLM serving policies and compare them."""
