"""``simqueue run``: play scenarios and show what came out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simqueue.cli.common import Debug, Replications, Seed, Set, Workers, console, replicated
from simqueue.errors import InputError

if TYPE_CHECKING:
    from simqueue.results.result import Result
    from simqueue.scenario import Scenario

RESULTS = Path("results")


def run(
    scenarios: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", help="Scenario files, or names from `simqueue list scenarios`."),
    ],
    set_: Set = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for tables and figures. Default: results/NAME, NAME being the scenario's; with several "
            "scenarios each has a folder of its name inside DIR.",
        ),
    ] = None,
    json_: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object a scenario and nothing else; files are written with --out only."
        ),
    ] = False,
    json_summary: Annotated[
        bool, typer.Option("--json-summary", help="Like --json, without the single requests.")
    ] = False,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Draw no figures.")] = False,
    export_trace: Annotated[
        Path | None,
        typer.Option(
            "--export-trace",
            metavar="FILE",
            help="Write the requests of the first policy's run as a trace (JSON lines) that plays the same run again; "
            "for one scenario.",
        ),
    ] = None,
    stream: Annotated[
        Path | None,
        typer.Option(
            "--stream",
            metavar="DIR",
            help="Write requests, steps and gaps of each policy to DIR/SCENARIO/POLICY/*.parquet while running, so "
            "that memory hardly grows with the run; other files are written with --out only. For one replication.",
        ),
    ] = None,
    replications: Replications = None,
    workers: Workers = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Run scenarios: every policy of a scenario sees the same traffic."""
    if json_ and json_summary:
        raise InputError("--json and --json-summary: give one of the two, with the single requests or without")
    loaded = _load_all(scenarios, replicated(set_ or (), replications), seed)
    from simqueue.cli.progress import progress_bar
    from simqueue.experiment import run as run_scenario

    if export_trace is not None and len(loaded) > 1:
        raise InputError(f"--export-trace {export_trace}: takes the run of one scenario, {len(loaded)} are given")
    as_json = json_ or json_summary
    for scenario in loaded:
        with progress_bar(scenario.name, quiet=quiet) as progress:
            streamed = None if stream is None else stream / scenario.name
            result = run_scenario(scenario, progress=progress, workers=workers, stream_to=streamed)
        folder = _folder(scenario, out, several=len(loaded) > 1, as_json=as_json or stream is not None)
        written = [] if folder is None else result.save(folder, figures=not no_figures)
        if export_trace is not None:
            result.export_trace(export_trace)
            written = [*written, export_trace]
        if as_json:
            typer.echo(result.to_json(requests=not json_summary))
        else:
            _show(result, written)


def _load_all(arguments: Sequence[str], overrides: Iterable[str], seed: int | None) -> list[Scenario]:
    """Load every scenario before the first one runs, and report the mistakes of all."""
    from simqueue.scenario import load
    from simqueue.scenario.library import find

    loaded: list[Scenario] = []
    errors: list[str] = []
    for argument in arguments:
        try:
            scenario = load(find(argument), overrides, seed)
        except InputError as error:
            errors.append(str(error))
            continue
        if any(scenario.name == other.name for other in loaded):
            errors.append(f"{argument}: another scenario of this run is called '{scenario.name}' too; rename one")
        loaded.append(scenario)
    if errors:
        raise InputError("\n".join(errors))
    return loaded


def _folder(scenario: Scenario, out: Path | None, *, several: bool, as_json: bool) -> Path | None:
    if out is None:
        return None if as_json else RESULTS / scenario.name
    return out / scenario.name if several else out


_SHOWN_FLAGS = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "policy",
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "scheduler_reserve_full_isl",
    "watermark",
    "async_scheduling",
    "enable_prefix_caching",
    "gpu_memory_utilization",
)


def _engines(result: Result) -> list[str]:
    """Return a line for each policy that names an engine: its version, and the flags that decide its schedule."""
    lines = []
    for name, policy in result.scenario["policies"].items():
        if "engine" in policy:
            core = f"V{int(policy['use_v1'])}, " if policy.get("use_v1") is not None else ""
            flags = ", ".join(f"{flag} {_plain(policy[flag])}" for flag in _SHOWN_FLAGS if policy.get(flag) is not None)
            lines.append(f"{name} = {policy['engine']} {policy['version']} ({core}{policy['usage']}): {flags}")
    return lines


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _show(result: Result, written: Sequence[Path]) -> None:
    """Print warnings, then the comparison, then the files."""
    from simqueue.report.text import comparison_table, notes

    for line in result.warnings:
        typer.echo(f"warning: {line}")
    for line in _engines(result):
        typer.echo(line)
    screen = console()
    screen.print(comparison_table(result, screen.width))
    for line in notes(result):
        typer.echo(line)
    if written:
        typer.echo("written:")
    for path in written:
        typer.echo(f"  {path}")
