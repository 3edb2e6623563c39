"""The typer application that all commands hang on."""

from __future__ import annotations

from typing import Annotated

import typer

from simqueue.cli import (
    calibrate,
    capacity,
    compare,
    explain,
    init,
    listing,
    module08,
    report,
    run,
    schema,
    theory,
    validate,
    verify,
    workload,
)

app = typer.Typer(
    help="A discrete-event laboratory for LLM inference serving.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from simqueue import __version__

        typer.echo(f"simqueue {__version__}")
        raise typer.Exit


@app.callback(epilog="Start with: simqueue init first.yaml && simqueue run first.yaml")
def simqueue(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Play the same traffic through one or several LLM serving policies and compare them."""


app.command("run")(run.run)
app.command("init")(init.init)
app.command("validate")(validate.validate)
app.command("schema")(schema.schema)
app.command("compare")(compare.compare)
app.command("capacity")(capacity.capacity)
app.command("theory")(theory.theory)
app.command("explain")(explain.explain)
app.command("calibrate")(calibrate.calibrate)
app.command("report")(report.report)
app.command("verify")(verify.verify)
app.command("workload")(workload.workload)
app.add_typer(listing.app, name="list")
app.add_typer(module08.app, name="module08")
