"""``simqueue compare``: test whether policies differ on the same traffic."""

from __future__ import annotations

import typer

from simqueue.cli.actions.common import load_scenario, print_json, print_warnings
from simqueue.cli.actions.screen import console, empty_table, progress_bar
from simqueue.experiment import run
from simqueue.experiment.comparing import DEFAULT_METRICS, Compared, check_names, compared
from simqueue.experiment.questions import to_compare


def compare(
    scenario: str,
    set_: list[str] | None,
    seed: int | None,
    baseline: str | None,
    metric: list[str] | None,
    replications: int | None,
    workers: int | None,
    json_: bool,
    quiet: bool,
) -> None:
    """Run a scenario and print the differences between its policies, as a table or as JSON."""
    loaded = to_compare(load_scenario(scenario, set_, seed, replications).resolve(), replications)
    metrics = metric or DEFAULT_METRICS
    check_names(loaded.policy_names, baseline, metrics)
    with progress_bar(loaded.name, quiet=quiet) as progress:
        result = run(loaded, progress=progress, workers=workers)
    rows = compared(result, baseline, metrics)
    if json_:
        comparisons = [row.plain() for row in rows]
        print_json({"scenario": loaded.name, "warnings": list(result.warnings), "comparisons": comparisons})
        return
    print_warnings(result.warnings)
    if result.replicated:
        _show(rows, result.confidence)
    else:
        _show_single(rows)


def _show(rows: list[Compared], confidence: float) -> None:
    numbers = ("difference", "ratio", "p (Holm)")
    shown = empty_table(("metric", "policy", "baseline", *numbers, "verdict"), numbers)
    for row in rows:
        shown.add_row(row.metric, row.policy, row.baseline, row.difference(), row.ratio(), row.p(), row.verdict)
    console().print(shown)
    typer.echo(
        f"difference and ratio: policy against baseline, paired by replication, with {100 * confidence:g} % confidence "
        "intervals; verdict: with Holm's correction for all rows"
    )


def _show_single(rows: list[Compared]) -> None:
    """Print differences of policies that ran once each."""
    numbers = ("difference", "ratio")
    reasons = ("note",) if any(row.verdict for row in rows) else ()
    shown = empty_table(("metric", "policy", "baseline", *numbers, *reasons), numbers)
    for row in rows:
        cells = (row.metric, row.policy, row.baseline, row.difference(), row.ratio())
        shown.add_row(*cells, *(row.verdict or "" for _ in reasons))
    console().print(shown)
    typer.echo("one run of each policy: the differences have no interval, no p-value and no verdict")
