"""``simqueue sensitivity``: how strongly results react to keys of a scenario."""

from __future__ import annotations

from simqueue.cli.actions.common import print_json, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.execution import Executor
from simqueue.experiment.comparing import about_percentiles
from simqueue.experiment.sensitivity import DEFAULT_METRICS, STEP, Sensitivity
from simqueue.experiment.sensitivity import sensitivity as derivatives
from simqueue.report.lines import metric_label


def sensitivity(
    scenario: str,
    to: list[str],
    set_: list[str] | None,
    seed: int | None,
    metric: list[str] | None,
    step: float | None,
    replications: int | None,
    workers: Executor,
    json_: bool,
    quiet: bool,
) -> None:
    """Run the scenario around each key, and print derivatives as a table or as JSON."""
    with progress_bar(scenario, quiet=quiet) as progress:
        found = derivatives(
            scenario,
            to,
            metrics=metric or DEFAULT_METRICS,
            replications=replications,
            step=STEP if step is None else step,
            overrides=set_ or (),
            seed=seed,
            progress=progress,
            workers=workers,
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
