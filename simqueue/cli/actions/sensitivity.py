"""``simqueue sensitivity``: how strongly results react to keys of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simqueue.cli.actions.common import print_json, say
from simqueue.cli.actions.indices import show_indices
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.errors import InputError
from simqueue.execution import Executor
from simqueue.experiment.comparing import about_percentiles
from simqueue.experiment.sensitivity import DEFAULT_METRICS, STEP, Sensitivity
from simqueue.experiment.sensitivity import sensitivity as derivatives
from simqueue.report.lines import metric_label


def sensitivity(
    scenario: str,
    to: list[str] | None,
    over: list[str] | None,
    method: str,
    points: int | None,
    no_model_error: bool,
    design_seed: int,
    out: Path | None,
    figure: Path | None,
    set_: list[str] | None,
    seed: int | None,
    metric: list[str] | None,
    step: float | None,
    replications: int | None,
    workers: Executor,
    json_: bool,
    quiet: bool,
) -> None:
    """Print derivatives around the scenario, or indices over ranges of its keys."""
    common = {"overrides": set_ or (), "seed": seed, "replications": replications, "workers": workers}
    if to and over:
        raise InputError("--to, --over: only one of them can be given")
    if to:
        _reject("--to", points=points, out=out, figure=figure, no_model_error=no_model_error)
        _derivatives(scenario, to, metric, step, json_, quiet, common)
        return
    _reject("--over", step=step)
    if not over:
        raise InputError("give --to KEY for derivatives, or --over KEY=LOW:HIGH for indices over ranges")
    options = {**common, "points": points, "design_seed": design_seed, "out": out, "model_error": not no_model_error}
    show_indices(scenario, over, method, metric, figure, json_, quiet, options)


def _reject(kind: str, **given: object) -> None:
    """Raise `InputError` if an option was given that belongs to the other kind of analysis."""
    other = "--over" if kind == "--to" else "--to"
    for name, value in given.items():
        if value:
            raise InputError(f"--{name.replace('_', '-')}: is for {other}")


def _derivatives(
    scenario: str,
    to: list[str],
    metric: list[str] | None,
    step: float | None,
    json_: bool,
    quiet: bool,
    common: Mapping[str, Any],
) -> None:
    """Run the scenario around each key, and print derivatives as a table or as JSON."""
    with progress_bar(scenario, quiet=quiet) as progress:
        found = derivatives(
            scenario,
            to,
            metrics=metric or DEFAULT_METRICS,
            step=STEP if step is None else step,
            progress=progress,
            **common,
        )
    if json_:
        print_json([one.plain() for one in found])
        return
    titles = ("key", "from", "to", "policy", "metric", "change per unit")
    print_rows(
        titles, [_row(one) for one in found], left=("key", "policy", "metric"), wrapped=("key", "policy", "metric")
    )
    for reason in dict.fromkeys(one.reason for one in found if one.reason):
        say(f"-: {reason}")
    say("derivatives by central differences on the same random numbers, with 95 % intervals over replications")
    for line in about_percentiles([one.metric for one in found]):
        say(line)


def _row(one: Sensitivity) -> tuple[str, ...]:
    value = "-"
    if one.derivative is not None and one.high is not None:
        value = f"{one.derivative:.4g} ± {one.high - one.derivative:.2g}"
    return one.key, f"{one.below:.6g}", f"{one.above:.6g}", one.policy, metric_label(one.metric), value
