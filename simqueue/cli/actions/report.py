"""``simqueue report``: one HTML page of a scenario or of saved results."""

from __future__ import annotations

from pathlib import Path

import typer

from simqueue.cli.actions.common import load_scenario, print_warnings
from simqueue.cli.actions.screen import progress_bar
from simqueue.datafiles.regular import is_folder
from simqueue.errors import InputError
from simqueue.execution import Executor
from simqueue.experiment import run
from simqueue.figures.view import ResultView
from simqueue.figures.window import Window, check_window, parsed_window
from simqueue.outputs import reserved_file
from simqueue.results.stored import read_result


def report(
    source: str,
    out: Path,
    set_: list[str] | None,
    seed: int | None,
    replications: int | None,
    workers: Executor,
    window: str | None,
    quiet: bool,
) -> None:
    """Write the page of a saved result, or of a scenario after running it."""
    if out.suffix not in {".html", ".htm"}:
        raise InputError(f"--out: {out} must end in .html")
    shown = None if window is None else parsed_window(window)
    with reserved_file(out) as place:
        result = _result(source, set_, seed, replications, workers, quiet=quiet)
        place.write_text(_page(result, shown))
    print_warnings(result.warnings)
    typer.echo(f"written: {out}")


def _result(
    source: str,
    overrides: list[str] | None,
    seed: int | None,
    replications: int | None,
    workers: Executor,
    *,
    quiet: bool,
) -> ResultView:
    """Return a saved result, or that of a scenario, which is run."""
    if is_folder(Path(source)):
        if overrides or seed is not None or replications is not None:
            raise InputError(f"{source}: is a saved result; --set, --seed and --replications need a scenario")
        return read_result(Path(source))
    scenario = load_scenario(source, overrides, seed, replications)
    with progress_bar(scenario.name, quiet=quiet) as progress:
        return run(scenario, progress=progress, workers=workers)


def _page(result: ResultView, window: Window | None) -> str:
    """Return the page; what draws it is loaded only now, so that errors come at once."""
    from simqueue.report.html import html  # noqa: PLC0415 - see above
    from simqueue.report.page import result_page  # noqa: PLC0415 - see above

    if window is not None:
        check_window(result, window)
    return html(result_page(result, window))
