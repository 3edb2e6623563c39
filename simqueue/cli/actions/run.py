"""``simqueue run``: run scenarios and show the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from simqueue.cli.actions.common import baseline_place, load_scenario, print_json_text, print_warnings, say
from simqueue.cli.actions.latencies import summary_overrides
from simqueue.cli.actions.screen import console, progress_bar, wrapped
from simqueue.cli.failures import FAILED, report
from simqueue.engines import ENGINES
from simqueue.errors import InputError, Problem
from simqueue.execution import Executor
from simqueue.experiment import run as run_scenario
from simqueue.experiment.replications import check_streamable
from simqueue.outputs import Outputs, Place
from simqueue.printable import printable
from simqueue.report.groups import group_tables
from simqueue.report.intervals import interval_lines
from simqueue.report.text import comparison_table, notes
from simqueue.results import store
from simqueue.results.onerun import check_method
from simqueue.results.result import Result
from simqueue.scenario import Scenario
from simqueue.scenario.fleet_values import parts_of_values
from simqueue.scenario.paths import files_of
from simqueue.scenario.traffic import is_random_run

_RESULTS = Path("results")


@dataclass(frozen=True, slots=True)
class _Job:
    """A scenario, and the reserved places of its outputs; None: that output is not wanted."""

    scenario: Scenario
    folder: Place | None
    trace: Place | None
    stream: Place | None


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
    intervals: str | None,
    replications: int | None,
    percentiles: str | None,
    metrics: str | None,
    with_model_error: bool,
    write_baseline: Path | None,
    workers: Executor,
    quiet: bool,
) -> None:
    """Run each scenario, write its files, and print its table or its JSON object."""
    if json_ and json_summary:
        raise InputError("--json and --json-summary: only one of them can be given")
    for flag, is_given in (("--stream", stream is not None), ("--intervals", intervals is not None)):
        if with_model_error and is_given:
            raise InputError(f"--with-model-error, {flag}: only one of them can be given")
    overrides = [*(set_ or ()), *summary_overrides(percentiles, metrics)]
    if intervals is not None:
        check_method(intervals)
    loaded = _load_all(scenarios, overrides, seed, replications, streamed=stream is not None)
    if intervals is not None:
        _check_single(loaded, intervals)
    for flag, file in (("--export-trace", export_trace), ("--write-baseline", write_baseline)):
        if file is not None and len(loaded) > 1:
            raise InputError(f"{flag} {file}: needs a single scenario; {len(loaded)} are given")
    as_json = json_ or json_summary
    if out is None and not as_json and stream is None:
        out, several = _RESULTS, True
    else:
        several = len(loaded) > 1

    def do(job: _Job) -> None:
        result = _result(job, workers, with_model_error=with_model_error, quiet=quiet)
        written = _write(result, job, figures=not no_figures)
        if kept is not None:
            from simqueue.decisions.baseline import write_baseline as keep  # noqa: PLC0415 - few runs need it

            keep(result, kept)
            written = [*written, kept.path]
        if as_json:
            print_json_text(result.to_json(requests=not json_summary, intervals=intervals))
        else:
            _show(result, written, intervals)

    with Outputs() as outputs:
        kept = None if write_baseline is None else baseline_place(outputs, write_baseline)
        _do_all(do, [_reserved(outputs, one, out, stream, export_trace, several=several) for one in loaded])


def _load_all(
    arguments: Sequence[str],
    overrides: list[str] | None,
    seed: int | None,
    replications: int | None,
    *,
    streamed: bool,
) -> list[Scenario]:
    """Load all scenarios before the first one runs, and collect the errors of all."""
    loaded: list[Scenario] = []
    problems: list[Problem] = []
    for argument in arguments:
        try:
            scenario = load_scenario(argument, overrides, seed, replications)
            if streamed:
                check_streamable(scenario.resolve())
            if len(arguments) > 1:  # a single one is checked when it is run
                scenario.resolve().check_traffic()
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


def _check_single(scenarios: Sequence[Scenario], intervals: str) -> None:
    """Raise `InputError` if a scenario has replications, which have intervals of their own."""
    for scenario in scenarios:
        resolved = scenario.resolve()
        if (resolved.replications > 1 or resolved.precision is not None) and is_random_run(resolved):
            raise InputError(
                f"--intervals {intervals}: is for single runs; {scenario.name} has replications, whose intervals are "
                "in the table; set replications: 1 and precision: null"
            )


def _reserved(
    outputs: Outputs,
    scenario: Scenario,
    out: Path | None,
    stream: Path | None,
    export_trace: Path | None,
    *,
    several: bool,
) -> _Job:
    """Reserve what will be written for a scenario. With `several`, its results are a folder of its name in `out`."""
    folder = trace = streamed = None
    if out is not None:
        folder = outputs.folder(out / scenario.name if several else out, store.MARKER)
    if export_trace is not None:
        trace = outputs.file(export_trace)  # before the check, which needs a path that can be
        _check_not_read(export_trace, scenario)
    if stream is not None:
        from simqueue.results.streaming import MARKER  # noqa: PLC0415 - pyarrow loads slowly, and few runs stream

        streamed = outputs.folder(stream / scenario.name, MARKER, keep_partial=True)
    return _Job(scenario, folder, trace, streamed)


def _check_not_read(trace: Path, scenario: Scenario) -> None:
    """Check that an exported trace would not replace a file that the scenario is made of."""
    resolved = scenario.resolve()
    read = (Path(scenario.written.document.file), *files_of(resolved.values, resolved.base_dir))
    if trace.exists() and any(path.is_file() and path.samefile(trace) for path in read):
        raise InputError(f"--export-trace {trace}: this command reads the file; choose another one")


def _do_all(do: Callable[[_Job], None], jobs: Sequence[_Job]) -> None:
    """Do all jobs. If one of several fails, its error is printed, the others are done, and the command exits with 1."""
    if len(jobs) == 1:
        do(jobs[0])
        return
    failed = False
    for job in jobs:
        try:
            do(job)
        except BrokenPipeError:
            raise
        except Exception as error:
            report(error, job.scenario.name)
            failed = True
    if failed:
        raise typer.Exit(FAILED)


def _result(job: _Job, workers: Executor, *, with_model_error: bool, quiet: bool) -> Result:
    """Run a scenario. If a streamed run is stopped, say where its tables are."""
    try:
        with progress_bar(job.scenario.name, quiet=quiet) as progress:
            return run_scenario(
                job.scenario,
                progress=progress,
                workers=workers,
                stream_to=job.stream,
                with_model_error=with_model_error,
            )
    except BaseException:
        if job.stream is not None and job.stream.keeps_partial():
            typer.echo(f"note: what was written until then is in {job.stream.partial_path}, in parts", err=True)
        raise


def _write(result: Result, job: _Job, *, figures: bool) -> list[Path]:
    written = [] if job.folder is None else result.save(job.folder, figures=figures)
    if job.trace is None:
        return written
    result.export_trace(job.trace)
    return [*written, job.trace.path]


def _show(result: Result, written: Sequence[Path], intervals: str | None) -> None:
    """Print warnings, then the table of the policies, then intervals if wanted, then the files."""
    print_warnings(result.warnings)
    screen = console()
    for line in _engines(result):
        typer.echo("\n".join(wrapped(printable(line), screen.width)))
    screen.print(comparison_table(result, screen.width))
    for title, table in group_tables(result, screen.width):
        say(title)
        screen.print(table)
    for line in notes(result):
        say(line)
    if intervals is not None:
        for line in interval_lines(result.one_run_intervals(intervals)):
            say(line)
    if written:
        typer.echo("written:")
    for path in written:
        say(f"  {path}")


def _engines(result: Result) -> list[str]:
    """Return one line per policy with an engine: its version, and the flags that decide its schedule."""
    parts = [part for policy in result.scenario["policies"].items() for part in parts_of_values(*policy)]
    return [f"{name} = {ENGINES[part['engine']].summary(part)}" for name, part in parts if "engine" in part]
