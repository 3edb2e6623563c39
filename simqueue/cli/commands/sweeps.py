"""Commands that run a scenario many times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from simqueue.cli.command import command
from simqueue.cli.options import Dask, Debug, Import, Json, Quiet, Replications, Seed, Set, Workers, scenarios_from


@command("sweep:sweep")
def sweep(
    scenario: Annotated[
        str,
        Argument(
            metavar="SCENARIO|FILE",
            help="A scenario file, a name from `simqueue list scenarios`, or a design file: a scenario and its axes.",
            autocompletion=scenarios_from,
        ),
    ],
    grid: Annotated[
        list[str] | None,
        Option(
            "--grid",
            metavar="KEY=VALUES",
            help="Axis of a grid: every value with every other. VALUES are a list (64,128), a range (4:32:8: 8 values "
            "from 4 to 32; log:1:100:5), or shares of the smallest capacity (capacity:0.3:1.05:6). * in KEY stands for "
            "every name, as in policies.*.max_num_seqs. Repeatable.",
        ),
    ] = None,
    zip_: Annotated[
        list[str] | None,
        Option("--zip", metavar="KEY=VALUES", help="Axis whose values go together with those of the other --zip."),
    ] = None,
    draw: Annotated[
        list[str] | None,
        Option(
            "--draw", metavar="KEY=LOW:HIGH", help="Axis whose values are drawn, from a range or a list. Repeatable."
        ),
    ] = None,
    sample: Annotated[
        str | None, Option("--sample", metavar="KIND", help="How they are drawn: sobol (default), lhs or random.")
    ] = None,
    points: Annotated[int | None, Option("--points", metavar="N", min=1, help="How many are drawn.")] = None,
    seed_of_design: Annotated[
        int | None, Option("--seed-of-design", metavar="S", min=0, help="Seed of the drawing. Default: 0.")
    ] = None,
    design: Annotated[
        Path | None,
        Option("--design", metavar="FILE", help="CSV file with a column per key and a row per cell."),
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    replications: Replications = None,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="DIR",
            help="Folder of the store and the tables. Cells that it has are not run again. Default: "
            "results/NAME-sweep.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        Option("--metric", metavar="COLUMN", help="Column of the summary to show. Repeatable."),
    ] = None,
    figure: Annotated[
        Path | None,
        Option("--figure", metavar="FILE", help="Draw the first metric over the first axis, as .png or .svg."),
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Show the cells, how many are stored, and an estimate of the time. Writes nothing."),
    ] = False,
    json_: Json = False,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Run a scenario with many values of its keys.

    Every cell of the design is run with the same random numbers, and stored when it is done. If the command is stopped,
    the same command goes on with the cells that are missing. Writes DIR/rows.parquet, with one row per cell, policy and
    replication.

    A cell that fails is a row with its error. The others are run, and the command exits with 1.
    """
