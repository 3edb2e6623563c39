"""The command about which inputs move the results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from simqueue.cli.command import command
from simqueue.cli.options import Dask, Debug, Import, Json, Quiet, Replications, Scenario, Seed, Set, Workers


@command("sensitivity:sensitivity")
def sensitivity(
    scenario: Scenario,
    to: Annotated[
        list[str] | None,
        Option(
            "--to",
            metavar="KEY",
            help="Derivative to a key with a number, such as workload.arrivals.rate_rps or policies.NAME.max_num_seqs. "
            "Repeatable.",
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        Option(
            "--over",
            metavar="KEY=LOW:HIGH",
            help="Vary a key over a range (also log:LOW:HIGH) or a list of values (A,B,C), together with all others. "
            "Repeatable.",
        ),
    ] = None,
    method: Annotated[
        str,
        Option(
            "--method",
            metavar="METHOD",
            help="With --over: morris (which inputs matter, with few runs) or sobol (shares of the variance).",
        ),
    ] = "morris",
    points: Annotated[
        int | None,
        Option(
            "--points",
            metavar="N",
            help="With --over: trajectories of morris (20), base points of sobol (128, a power of 2). With D inputs, "
            "N times D + 1, or times D + 2, points are run.",
        ),
    ] = None,
    no_model_error: Annotated[
        bool,
        Option("--no-model-error", help="With --over: do not vary the step times by the published error of a preset."),
    ] = False,
    design_seed: Annotated[
        int, Option("--design-seed", metavar="N", min=0, help="With --over: seed of the points.")
    ] = 0,
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="With --over: store the points in a folder, so that a next call goes on."),
    ] = None,
    figure: Annotated[
        Path | None,
        Option("--figure", metavar="FILE", help="With --over: draw the indices, as .png or .svg."),
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    metric: Annotated[
        list[str] | None,
        Option("--metric", metavar="COLUMN", help="Column of the summary. Repeatable."),
    ] = None,
    step: Annotated[
        float | None,
        Option(
            "--step",
            metavar="SHARE",
            help="With --to: relative step, 0.05 by default. Whole numbers are changed by 1.",
        ),
    ] = None,
    replications: Replications = None,
    workers: Workers = None,
    dask: Dask = None,
    json_: Json = False,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Show which inputs move the results, and how strongly.

    With --to, runs the scenario with a key a bit lower and a bit higher, on the same random numbers, and prints the
    change of each metric per unit of the key. If the scenario sets no number of replications, 20 are run.

    With --over, varies all keys together over their ranges, and with them the step times by the published error of
    their preset, and prints which of them move each metric, by the indices of Morris or Sobol. If the scenario sets no
    number of replications, 4 are run at each point.
    """
