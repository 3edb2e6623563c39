"""``simqueue report``: one HTML page of a scenario or of saved results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from simqueue.cli.common import Debug, Replications, Seed, Set, Workers, replicated
from simqueue.errors import InputError, RunError


def report(
    source: Annotated[
        str,
        typer.Argument(metavar="SCENARIO|DIR", help="A scenario, which is run, or a folder that `simqueue run` wrote."),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Page to write. Default: report.html.")
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    replications: Replications = None,
    workers: Workers = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Write one self-contained page: warnings, tables, figures and the resolved scenario.

    It loads nothing from anywhere, follows the reader's choice of dark or light, and prints.
    """
    target = out or Path("report.html")
    if target.suffix not in {".html", ".htm"}:
        raise InputError(f"--out: {target} must end in .html")
    from simqueue.report.document import html
    from simqueue.report.page import result_page

    result: Any
    if Path(source).is_dir():
        if set_ or seed is not None or replications is not None:
            raise InputError(f"{source}: is a saved result; --set, --seed and --replications go with a scenario")
        from simqueue.results.stored import read_result

        result = read_result(Path(source))
    else:
        from simqueue.cli.progress import progress_bar
        from simqueue.experiment import run
        from simqueue.scenario import load
        from simqueue.scenario.library import find

        scenario = load(find(source), replicated(set_ or (), replications), seed)
        with progress_bar(scenario.name, quiet=quiet) as progress:
            result = run(scenario, progress=progress, workers=workers)
    page = html(result_page(result))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RunError(f"{target}: cannot be written: {error.strerror}") from error
    for line in result.warnings:
        typer.echo(f"warning: {line}")
    typer.echo(f"written: {target}")
