"""``simqueue report``: one HTML page of a scenario or of saved results."""

from __future__ import annotations

from pathlib import Path

import typer

from simqueue.cli.actions.common import load_scenario, print_warnings
from simqueue.cli.actions.screen import progress_bar
from simqueue.datafiles.regular import is_folder
from simqueue.errors import InputError, RunError
from simqueue.experiment import run
from simqueue.figures.view import ResultView
from simqueue.report.html import html
from simqueue.report.page import result_page
from simqueue.results.stored import read_result


def report(
    source: str,
    out: Path,
    set_: list[str] | None,
    seed: int | None,
    replications: int | None,
    workers: int | None,
    quiet: bool,
) -> None:
    """Write the page of a saved result, or of a scenario after running it."""
    if out.suffix not in {".html", ".htm"}:
        raise InputError(f"--out: {out} must end in .html")
    result: ResultView
    if is_folder(Path(source)):
        if set_ or seed is not None or replications is not None:
            raise InputError(f"{source}: is a saved result; --set, --seed and --replications need a scenario")
        result = read_result(Path(source))
    else:
        scenario = load_scenario(source, set_, seed, replications)
        with progress_bar(scenario.name, quiet=quiet) as progress:
            result = run(scenario, progress=progress, workers=workers)
    page = html(result_page(result))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RunError(f"{out}: cannot be written: {error.strerror}") from error
    print_warnings(result.warnings)
    typer.echo(f"written: {out}")
