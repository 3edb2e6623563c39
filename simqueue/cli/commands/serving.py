"""The command about how much a system can serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from simqueue.cli.command import command
from simqueue.cli.options import Dask, Debug, Import, Json, Quiet, Scenario, Seed, Set, WithModelError, Workers


@command("capacity:capacity")
def capacity(
    scenario: Scenario,
    set_: Set = None,
    seed: Seed = None,
    slo: Annotated[
        list[str] | None,
        Option(
            "--slo",
            metavar="METRIC<=VALUE",
            help="Search the highest rate that keeps this limit, such as 'p99_ttft_ms<=500', or 'ttft_ms<=500' for "
            "single requests, or the limits of the scenario with --slo scenario. Repeatable.",
        ),
    ] = None,
    attainment: Annotated[
        float | None,
        Option(
            "--attainment",
            metavar="SHARE",
            help="Share of requests that meet the limits of single ones. Default: 0.99.",
        ),
    ] = None,
    precision: Annotated[
        float | None,
        Option(
            "--precision",
            metavar="SHARE",
            help="With --slo: largest side of the interval over the rate. Default: 0.02.",
        ),
    ] = None,
    max_runs: Annotated[
        int | None, Option("--max-runs", metavar="N", min=10, help="With --slo: most runs per policy. Default: 600.")
    ] = None,
    budget_s: Annotated[
        float | None,
        Option(
            "--budget-s", metavar="SECONDS", help="With --slo: most time of the search per policy. Default: no limit."
        ),
    ] = None,
    with_model_error: WithModelError = False,
    json_: Json = False,
    check: Annotated[
        bool,
        Option("--check", help="Simulate a short backlog with each policy too, and print what it carries."),
    ] = False,
    figure: Annotated[
        Path | None,
        Option(
            "--figure",
            metavar="FILE",
            help="Draw throughput, TPOT and TTFT over the rate, as .png or .svg; with --slo, goodput, attainment and "
            "what is limited, with the answers.",
        ),
    ] = None,
    simulate: Annotated[
        bool, Option("--simulate", help="Add simulated points with confidence intervals to the figure.")
    ] = False,
    replications: Annotated[
        int, Option("--replications", metavar="N", min=2, help="Independent runs per simulated point.")
    ] = 5,
    requests: Annotated[
        int | None,
        Option(
            "--requests",
            metavar="N",
            min=100,
            help="Requests in each of these runs. Default: 2000; with --slo, as many as the percentiles need, and "
            "longer runs if these are not enough.",
        ),
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    quiet: Quiet = False,
    import_: Import = None,
    debug: Debug = False,
) -> None:
    """Find how much each policy can serve.

    Without --slo, nothing is simulated. Prints the highest request rate that each policy can sustain, what limits it,
    and estimates of latencies at the scenario's rate. Where the formula is known to be inexact, above all if a full KV
    pool evicts requests, the capacity is found by playing some hundred requests through the rules of the policy, and
    bounds are printed too.

    With --slo, prints the highest rate at which each policy keeps the limits, with its interval, which limit a higher
    rate would break, and the values there. Rates are simulated on the same random numbers, with longer and longer runs,
    until the interval is narrow enough or the budget is used up.

    Exits with 2 if there is no formula for the capacity of any policy. With --json, `note` gives the reason instead.
    """
