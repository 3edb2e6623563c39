"""``simqueue compare``: test whether policies differ on the same traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from simqueue.cli.actions.changes import compare_results
from simqueue.cli.actions.common import load_scenario, print_json, print_warnings, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.decisions.comparing_results import is_kept
from simqueue.errors import InputError
from simqueue.execution import Executor
from simqueue.experiment import run
from simqueue.experiment.comparing import DEFAULT_METRICS, Compared, about_percentiles, compared
from simqueue.experiment.held import HeldTable, held
from simqueue.experiment.metric_names import check_names, numeric_columns
from simqueue.experiment.questions import to_compare
from simqueue.report.lines import metric_label


def compare(
    scenario: str,
    result: str | None,
    set_: list[str] | None,
    seed: int | None,
    baseline: str | None,
    metric: list[str] | None,
    replications: int | None,
    with_model_error: bool,
    limit: list[str] | None,
    strict: bool,
    write_baseline: Path | None,
    workers: Executor,
    json_: bool,
    quiet: bool,
) -> None:
    """Compare policies of a scenario, or two results."""
    if result is None:
        if is_kept(Path(scenario)):
            raise InputError(f"{scenario}: is a result; give the result or the scenario to compare with it, too")
        _reject(f"{scenario}: needs RESULT as a second argument", limit=limit, strict=strict, write=write_baseline)
        _policies(scenario, set_, seed, baseline, metric, replications, with_model_error, workers, json_, quiet)
        return
    _reject("compares policies of one scenario", baseline=baseline, model_error=with_model_error)
    options = {"overrides": set_ or (), "seed": seed, "replications": replications, "workers": workers}
    compare_results(scenario, result, metric, limit or (), strict, write_baseline, json_, quiet, options)


_FLAGS = {
    "limit": "--limit",
    "strict": "--strict",
    "write": "--write-baseline",
    "baseline": "--baseline",
    "model_error": "--with-model-error",
}


def _reject(text: str, **given: object) -> None:
    """Raise `InputError` if an option was given that belongs to the other use of the command."""
    for name, value in given.items():
        if value:
            raise InputError(f"{_FLAGS[name]}: {text}")


def _policies(
    scenario: str,
    set_: list[str] | None,
    seed: int | None,
    baseline: str | None,
    metric: list[str] | None,
    replications: int | None,
    with_model_error: bool,
    workers: Executor,
    json_: bool,
    quiet: bool,
) -> None:
    """Run a scenario and print the differences between its policies, as a table or as JSON."""
    loaded = to_compare(load_scenario(scenario, set_, seed, replications).resolve(), replications)
    metrics = metric or DEFAULT_METRICS
    check_names(loaded.policy_names, baseline, metrics, numeric_columns(loaded))
    with progress_bar(loaded.name, quiet=quiet) as progress:
        runs = partial(run, progress=progress, workers=workers)
        if with_model_error:
            found = held(loaded, runs, baseline, metrics)
            result, rows, plain = found.result, [one.row for one in found.rows], [one.plain() for one in found.rows]
        else:
            found, result = None, runs(loaded)
            rows = compared(result, baseline, metrics)
            plain = [row.plain() for row in rows]
    if json_:
        print_json({"scenario": loaded.name, "warnings": list(result.warnings), "comparisons": plain})
        return
    print_warnings(result.warnings)
    if result.replicated:
        _show(rows, result.confidence)
    else:
        _show_single(rows)
    if found is not None:
        _show_held(found)


def _show_held(found: HeldTable) -> None:
    """Print which verdicts hold within the published errors of the step times."""
    lines = [one.line for one in found.rows if one.line]
    for line in sorted(lines, key=lambda line: not line.startswith("flips")):
        say(line)
    held_rows = sum(one.holds == "holds" for one in found.rows)
    known = sum(one.holds != "unknown" for one in found.rows)
    errors = ", ".join(f"{name} {100 * one.share:.3g} %" for name, one in found.errors.known.items() if one.share)
    say(f"within the published error of the step times ({errors}), {held_rows} of {known} verdicts hold")
    if found.errors.unknown_note:
        say(found.errors.unknown_note)


def _show(rows: list[Compared], confidence: float) -> None:
    """Print two tables: verdicts with the intervals of each row, and what holds for all rows together."""
    share = f"{100 * confidence:g} %"
    texts = {"p (Holm)": Compared.p, "verdict": lambda row: row.verdict or ""}
    _print_table(rows, {"difference": Compared.difference, "ratio of means": Compared.ratio, **texts})
    say(
        f"difference and ratio of means: against '{rows[0].baseline}', paired by replication; each interval holds with "
        f"{share} confidence by itself; verdict: with Holm's correction for all rows"
    )
    together = {"all differences": Compared.simultaneous_difference, "all ratios": Compared.simultaneous_ratio}
    _print_table(rows, {**together, "CRN": Compared.variance_factor})
    say(
        f"all differences, all ratios: all intervals of a column hold at once with {share} confidence (Bonferroni); "
        "CRN: how many times more variance the difference would have without common random numbers"
    )
    for line in about_percentiles([row.metric for row in rows]):
        say(line)


def _show_single(rows: list[Compared]) -> None:
    """Print differences of policies that ran once each."""
    reasons = {"note": lambda row: row.verdict or ""} if any(row.verdict for row in rows) else {}
    _print_table(rows, {"difference": Compared.difference, "ratio": Compared.ratio, **reasons})
    say(
        f"difference and ratio: against '{rows[0].baseline}'; one run of each policy: the differences have no "
        "interval, no p-value and no verdict"
    )


def _print_table(rows: list[Compared], shown: Mapping[str, Callable[[Compared], str]]) -> None:
    """Print one row per metric and policy; no name and no number is cut."""
    titles = ("metric", "policy", *shown)
    texts = [[metric_label(row.metric), row.policy, *(text(row) for text in shown.values())] for row in rows]
    print_rows(titles, texts, left=("metric", "policy"), wrapped=("verdict", "note"))
