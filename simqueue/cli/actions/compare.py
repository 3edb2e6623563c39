"""``simqueue compare``: test whether policies differ on the same traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from simqueue.cli.actions.common import load_scenario, print_json, print_warnings
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.experiment import run
from simqueue.experiment.comparing import DEFAULT_METRICS, Compared, check_names, compared
from simqueue.experiment.questions import to_compare
from simqueue.report.lines import metric_label


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
    _print_table(rows, {"p (Holm)": Compared.p, "verdict": lambda row: row.verdict or ""})
    typer.echo(
        f"difference and ratio: against '{rows[0].baseline}', paired by replication, with {100 * confidence:g} % "
        "confidence intervals; verdict: with Holm's correction for all rows"
    )


def _show_single(rows: list[Compared]) -> None:
    """Print differences of policies that ran once each."""
    reasons = {"note": lambda row: row.verdict or ""} if any(row.verdict for row in rows) else {}
    _print_table(rows, reasons)
    typer.echo(
        f"difference and ratio: against '{rows[0].baseline}'; one run of each policy: the differences have no "
        "interval, no p-value and no verdict"
    )


def _print_table(rows: list[Compared], more: Mapping[str, Callable[[Compared], str]]) -> None:
    """Print one row per metric and policy; no name and no number is cut."""
    shown = {"difference": Compared.difference, "ratio": Compared.ratio, **more}
    titles = ("metric", "policy", *shown)
    texts = [[metric_label(row.metric), row.policy, *(text(row) for text in shown.values())] for row in rows]
    print_rows(titles, texts, left=("metric", "policy"), wrapped=("verdict", "note"))
