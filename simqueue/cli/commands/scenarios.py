"""Commands about scenarios."""

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
    ManyScenarios,
    Metrics,
    NoFigures,
    Percentiles,
    Quiet,
    Replications,
    Scenario,
    Seed,
    Set,
    WithModelError,
    Workers,
    WriteBaseline,
)


@command("run:run")
def run(
    scenarios: ManyScenarios,
    set_: Set = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="DIR",
            help="Folder for tables and figures. Default: results/NAME, for the scenario's name. With several "
            "scenarios, each one gets a folder of its name inside DIR.",
        ),
    ] = None,
    json_: Annotated[
        bool,
        Option(
            "--json", help="Print one JSON object per scenario and nothing else. Files are written only with --out."
        ),
    ] = False,
    json_summary: Annotated[bool, Option("--json-summary", help="Like --json, without the single requests.")] = False,
    no_figures: NoFigures = False,
    export_trace: Annotated[
        Path | None,
        Option(
            "--export-trace",
            metavar="FILE",
            help="Write the requests of the first policy's run as a trace (JSON lines). Replaying the trace gives the "
            "same run. Only with a single scenario.",
        ),
    ] = None,
    stream: Annotated[
        Path | None,
        Option(
            "--stream",
            metavar="DIR",
            help="Write requests, steps and gaps to DIR/SCENARIO/POLICY/*.parquet during the run, which bounds memory "
            "in long runs. Until the run has ended, they are in DIR/SCENARIO.partial, in parts. Other files are "
            "written only with --out. Only with a single replication.",
        ),
    ] = None,
    intervals: Annotated[
        str | None,
        Option(
            "--intervals",
            metavar="METHOD",
            help="Also show intervals of a single run, or why there are none: batch-means or regenerative. "
            "Replications have better ones, in the summary.",
        ),
    ] = None,
    replications: Replications = None,
    percentiles: Percentiles = None,
    metrics: Metrics = None,
    with_model_error: WithModelError = False,
    write_baseline: WriteBaseline = None,
    workers: Workers = None,
    dask: Dask = None,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Run scenarios and compare their policies.

    All policies of a scenario get the same requests. Prints warnings, a table with one column per policy, and the
    files written. With --with-model-error, intervals are widened to what the runs at both ends of the error give.

    If one of several scenarios fails, the others are run, and the command exits with 1.
    """


@command("packaged:init")
def init(
    file: Annotated[Path, Argument(metavar="FILE", help="File to write.")] = Path("scenario.yaml"),
) -> None:
    """Write a commented scenario to start from.

    The scenario can be run as it is. An existing file is not overwritten.
    """


@command("scenario_files:validate")
def validate(
    scenarios: ManyScenarios,
    set_: Set = None,
    seed: Seed = None,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Check scenarios without running them.

    Prints OK and the values that each policy runs with, or one line per error. Each value is shown with its origin.
    """


@command("scenario_files:schema")
def schema(
    reference: Annotated[
        bool, Option("--reference", help="Print the reference of all keys, in Markdown, instead.")
    ] = False,
    import_: Import = None,
) -> None:
    """Print the JSON Schema of scenario files."""


@command("compare:compare")
def compare(
    scenario: Annotated[
        str,
        Argument(
            metavar="SCENARIO|BASELINE",
            help="A scenario, whose policies are compared; or, with RESULT, a folder written by `simqueue run` or a "
            "baseline file.",
        ),
    ],
    result: Annotated[
        str | None,
        Argument(
            metavar="RESULT",
            help="What is compared with BASELINE: a folder, a baseline file, or a scenario, which is run with the seed "
            "and the number of replications of the baseline.",
        ),
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    baseline: Annotated[
        str | None, Option("--baseline", metavar="POLICY", help="Policy to compare with. Default: the first one.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        Option("--metric", metavar="COLUMN", help="Column of the summary to compare. Repeatable."),
    ] = None,
    replications: Replications = None,
    with_model_error: WithModelError = False,
    limit: Annotated[
        list[str] | None,
        Option(
            "--limit",
            metavar="METRIC=CHANGE",
            help="With RESULT: exit with 1 if a change beyond it is shown. p99_ttft_ms=+5% is at most 5 % higher, "
            "request_throughput=-2% at most 2 % lower, preemptions=+10 at most 10 more. Repeatable.",
        ),
    ] = None,
    strict: Annotated[
        bool, Option("--strict", help="With --limit: exit with 1 also if it cannot be told whether a limit is kept.")
    ] = False,
    write_baseline: WriteBaseline = None,
    workers: Workers = None,
    dask: Dask = None,
    json_: Json = False,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Test whether policies differ, or what changed since a result.

    Runs the policies several times, each time with new requests that all policies share. Prints the difference to the
    baseline and the ratio of means, with intervals of each row and with intervals that hold for all rows at once, and
    what the shared requests gained. Verdicts include Holm's correction for the number of rows.

    If the scenario sets no number of replications, 10 are run. If nothing in the traffic is random, as in a recorded
    trace, each policy runs once, and the differences have no intervals.

    With --with-model-error, a line names each verdict that is another one at the ends of the error. Policies with the
    same preset on the same GPUs are off together; others in all combinations.

    With RESULT, prints the keys of the scenario that differ and the change of each metric of each policy. Replications
    of one seed are paired. Exits with 1 if a change beyond a limit is shown, otherwise with 0.
    """


@command("best:best")
def best(
    scenario: Scenario,
    set_: Set = None,
    seed: Seed = None,
    metric: Annotated[
        str, Option("--metric", metavar="COLUMN", help="Column of the summary that decides.")
    ] = "mean_ttft_ms",
    largest: Annotated[
        bool | None,
        Option(
            "--largest/--smallest",
            help="Whether larger or smaller values are better. Default: as for the metric; larger for throughput and "
            "goodput, smaller for latencies.",
            show_default=False,
        ),
    ] = None,
    zone: Annotated[
        str,
        Option(
            "--zone",
            metavar="DIFFERENCE",
            help="Difference that does not matter: in the unit of the metric, or as a share of the best mean after ten "
            "replications, such as 5%.",
        ),
    ] = "5%",
    confidence: Annotated[float, Option("--confidence", metavar="P", help="Probability of a right selection.")] = 0.95,
    max_replications: Annotated[
        int, Option("--max-replications", metavar="N", min=10, help="End without a decision after this many.")
    ] = 1000,
    with_model_error: WithModelError = False,
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="Folder for the tables of all runs. Default: none are written."),
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    json_: Json = False,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Find the best policy with as few runs as needed.

    All policies run on the same requests. After ten replications, and after every stage of some more, policies that can
    hardly be the best are dropped and not run any further. The policy that is left is, with the given probability, the
    best or within the zone of the best. Prints the ranking, which policies are not told apart from the best, and the
    number of runs, beside the number that equal allocation (no policy is dropped) would have taken.

    With --with-model-error, a line says if another policy is the best at an end of the error.
    """


@command("verify:verify")
def verify(
    scenario: Annotated[
        str | None,
        Argument(metavar="SCENARIO", help="Scenario to verify. Without it, the built-in cases are run."),
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    case: Annotated[
        list[str] | None, Option("--case", metavar="NAME", help="Run only this built-in case. Repeatable.")
    ] = None,
    replications: Annotated[
        int | None,
        Option(
            "--replications",
            metavar="N",
            min=2,
            help="Independent runs. Default: 40 short ones of each built-in case, 10 of a scenario.",
        ),
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    json_: Json = False,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Compare simulated means with exact queueing theory.

    Each row says the smallest error that its runs would find with probability 0.9. A mean differs if a t-test says so,
    with a significance of 5 % for all rows together. It agrees if it does not and an error of 5 % would have been
    found; otherwise the verdict is "not enough runs".

    Exits with 1 if a mean differs, otherwise with 0.
    """


@command("workload:workload")
def workload(
    scenario: Scenario,
    set_: Set = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="Folder for the figure. Default: results/NAME-workload."),
    ] = None,
    json_: Annotated[bool, Option("--json", help="Print one JSON object and draw nothing.")] = False,
    no_figures: NoFigures = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Describe the requests of a scenario without running it.

    Prints rate, burstiness, lengths and shared prefixes: of the requests of replication 0, and as the distributions
    state them. Policies are not needed.
    """


@command("report:report")
def report(
    source: Annotated[
        str, Argument(metavar="SCENARIO|DIR", help="A scenario, which is run, or a folder written by `simqueue run`.")
    ],
    out: Annotated[Path, Option("-o", "--out", metavar="FILE", help="Page to write.")] = Path("report.html"),
    set_: Set = None,
    seed: Seed = None,
    replications: Replications = None,
    workers: Workers = None,
    dask: Dask = None,
    window: Annotated[
        str | None,
        Option(
            "--window",
            metavar="START:END",
            help="Part of the run that figures of single steps show, in seconds. Default: the busiest part.",
        ),
    ] = None,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Write results as one HTML page.

    The page holds warnings, tables, figures and the scenario. It loads nothing from the network, has a dark mode, and
    can be printed.
    """
