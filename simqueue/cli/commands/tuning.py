"""The command that looks for the cheapest system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from simqueue.cli.command import command
from simqueue.cli.options import (
    Dask,
    Debug,
    Import,
    Json,
    Quiet,
    Seed,
    Set,
    WithModelError,
    Workers,
    scenarios_from,
)


@command("tune:tune")
def tune(
    scenario: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="A scenario: a file, a name from `simqueue list scenarios`, or - for standard input. Or a file with "
            "`scenario`, `space` and `slo`.",
            autocompletion=scenarios_from,
        ),
    ],
    space: Annotated[
        list[str] | None,
        Option(
            "--space",
            metavar="KEY=VALUES",
            help="A key that varies: a list such as 64,128,256, or a range such as 1:8:8. Repeatable. Example: "
            "--space gpu=h100-sxm,l40s --space tensor_parallel=1,2 --space max_num_seqs=64,256",
        ),
    ] = None,
    slo: Annotated[
        list[str] | None,
        Option(
            "--slo",
            metavar="LIMIT",
            help="A limit that systems must keep, such as p99_ttft_ms<=1000; `scenario`: those of the scenario. "
            "Repeatable.",
        ),
    ] = None,
    attainment: Annotated[
        float | None,
        Option("--attainment", metavar="SHARE", help="Share of the requests that meet limits of single requests."),
    ] = None,
    minimize: Annotated[
        str | None,
        Option(
            "--minimize",
            metavar="GOAL",
            help="What is best: cost, in USD per hour of the GPUs, or a column of the summary. Default: cost.",
        ),
    ] = None,
    maximize: Annotated[
        str | None, Option("--maximize", metavar="COLUMN", help="A column of the summary, instead of --minimize.")
    ] = None,
    tie: Annotated[
        str | None,
        Option(
            "--tie",
            metavar="COLUMN",
            help="Column of the summary that decides between systems of the same cost. Default: mean_e2el_ms.",
        ),
    ] = None,
    zone: Annotated[
        str | None,
        Option("--zone", metavar="SHARE", help="Difference of that column that does not matter. Default: 2%."),
    ] = None,
    policy: Annotated[
        str | None, Option("--policy", metavar="NAME", help="The policy that varies. Default: the only one.")
    ] = None,
    confidence: Annotated[
        float | None, Option("--confidence", metavar="P", help="Probability of a right answer. Default: 0.95.")
    ] = None,
    max_replications: Annotated[
        int | None, Option("--max-replications", metavar="N", min=2, help="Most runs of one system. Default: 32.")
    ] = None,
    max_runs: Annotated[
        int | None,
        Option("--max-runs", metavar="N", min=1, help="Most runs of all systems together. Default: no limit."),
    ] = None,
    budget_s: Annotated[
        float | None, Option("--budget-s", metavar="SECONDS", help="Most time of the search. Default: no limit.")
    ] = None,
    shown: Annotated[
        int | None, Option("--top", metavar="N", min=1, help="Systems that are shown and written. Default: 5.")
    ] = None,
    with_model_error: WithModelError = False,
    set_: Set = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="DIR",
            help="Folder for the best systems as scenario files (best-1.yaml, ...) and a table of all systems.",
        ),
    ] = None,
    figure: Annotated[
        Path | None, Option("--figure", metavar="FILE", help="Draw cost and limits of all systems (.png or .svg).")
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    json_: Json = False,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Find the cheapest system that keeps its limits.

    Every combination of the values of --space is a system; the traffic is that of the scenario. The capacity law takes
    away the systems that cannot serve the load. The others are run from cheap to dear, on the same requests: a short
    run gives up what is far off, and more runs decide about the rest. Prints the best system with its values and
    intervals, which ones could not be told apart from it, and why the others fell. That no system keeps the limits is
    an answer, too: the exit code is 0. It is 1 if a run failed.
    """
