"""``simqueue run``: run scenarios and show the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from simqueue.cli.actions.common import load_scenario, print_warnings
from simqueue.cli.actions.latencies import summary_overrides
from simqueue.cli.actions.screen import console, progress_bar, wrapped
from simqueue.engines import ENGINES
from simqueue.errors import InputError, Problem
from simqueue.experiment import run as run_scenario
from simqueue.report.text import comparison_table, notes
from simqueue.results.result import Result
from simqueue.scenario import Scenario

_RESULTS = Path("results")


def run(
    scenarios: list[str],
    set_: list[str] | None,
    seed: int | None,
    out: Path | None,
    json_: bool,
    json_summary: bool,
    no_figures: bool,
    export_trace: Path | None,
    stream: Path | None,
    replications: int | None,
    percentiles: str | None,
    metrics: str | None,
    workers: int | None,
    quiet: bool,
) -> None:
    """Run each scenario, write its files, and print its table or its JSON object."""
    if json_ and json_summary:
        raise InputError("--json and --json-summary: only one of them can be given")
    overrides = [*(set_ or ()), *summary_overrides(percentiles, metrics)]
    loaded = _load_all(scenarios, overrides, seed, replications)
    if export_trace is not None and len(loaded) > 1:
        raise InputError(f"--export-trace {export_trace}: needs a single scenario; {len(loaded)} are given")
    as_json = json_ or json_summary
    for scenario in loaded:
        with progress_bar(scenario.name, quiet=quiet) as progress:
            streamed = None if stream is None else stream / scenario.name
            result = run_scenario(scenario, progress=progress, workers=workers, stream_to=streamed)
        folder = _folder(scenario, out, several=len(loaded) > 1, by_default=not as_json and stream is None)
        written = _write(result, folder, export_trace, figures=not no_figures)
        if as_json:
            typer.echo(result.to_json(requests=not json_summary))
        else:
            _show(result, written)


def _load_all(
    arguments: Sequence[str], overrides: list[str] | None, seed: int | None, replications: int | None
) -> list[Scenario]:
    """Load all scenarios before the first one runs, and collect the errors of all."""
    loaded: list[Scenario] = []
    problems: list[Problem] = []
    for argument in arguments:
        try:
            scenario = load_scenario(argument, overrides, seed, replications)
        except InputError as error:
            problems += error.problems
            continue
        if any(scenario.name == other.name for other in loaded):
            text = f"the name '{scenario.name}' is used by another scenario of this command"
            problems.append(Problem((), text, place=argument))
        loaded.append(scenario)
    if problems:
        raise InputError.of(problems)
    return loaded


def _folder(scenario: Scenario, out: Path | None, *, several: bool, by_default: bool) -> Path | None:
    """Return the folder for the results of a scenario, or None if none are to be written."""
    if out is None:
        return _RESULTS / scenario.name if by_default else None
    return out / scenario.name if several else out


def _write(result: Result, folder: Path | None, export_trace: Path | None, *, figures: bool) -> list[Path]:
    written = [] if folder is None else result.save(folder, figures=figures)
    if export_trace is None:
        return written
    result.export_trace(export_trace)
    return [*written, export_trace]


def _show(result: Result, written: Sequence[Path]) -> None:
    """Print warnings, then the table of the policies, then the files."""
    print_warnings(result.warnings)
    screen = console()
    for line in _engines(result):
        typer.echo("\n".join(wrapped(line, screen.width)))
    screen.print(comparison_table(result, screen.width))
    for line in notes(result):
        typer.echo(line)
    if written:
        typer.echo("written:")
    for path in written:
        typer.echo(f"  {path}")


def _engines(result: Result) -> list[str]:
    """Return one line per policy with an engine: its version, and the flags that decide its schedule."""
    policies = result.scenario["policies"].items()
    return [f"{name} = {ENGINES[policy['engine']].summary(policy)}" for name, policy in policies if "engine" in policy]
