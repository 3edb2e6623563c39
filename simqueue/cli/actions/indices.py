"""``simqueue sensitivity --over``: which inputs move the results over their ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simqueue import figures
from simqueue.cli.actions.common import check_figure, print_json, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.decisions.global_sensitivity import GlobalSensitivity, Moved, global_sensitivity
from simqueue.decisions.screening import Index
from simqueue.errors import InputError
from simqueue.experiment.comparing import about_percentiles
from simqueue.experiment.sensitivity import DEFAULT_METRICS
from simqueue.outputs import Outputs
from simqueue.report.lines import metric_label
from simqueue.sweeps.axes import axes_of

_TITLES = {"mu_star": "mu*"}
_ABOUT = {
    "morris": "mu*: mean size of the change of the metric over the whole range of a factor; mu: with its sign; sigma: "
    "how much it depends on the other factors, or bends",
    "sobol": "S1: share of the variance of the metric that a factor makes by itself; ST: with its interactions",
}


def show_indices(
    scenario: str,
    over: Sequence[str],
    method: str,
    metric: list[str] | None,
    figure: Path | None,
    json_: bool,
    quiet: bool,
    options: Mapping[str, Any],
) -> None:
    """Run the points and print the indices, as a table or as JSON."""
    check_figure(figure)
    with Outputs() as outputs:
        place = None if figure is None else outputs.file(figure)
        with progress_bar(scenario, quiet=quiet, timed=True) as progress:
            found = global_sensitivity(
                scenario,
                _ranges(over),
                method=method,  # type: ignore[arg-type] # checked there
                metrics=metric or DEFAULT_METRICS,
                progress=progress,
                **options,
            )
        if place is not None:
            figures.write(found.plot(), place)
    if json_:
        print_json(found.plain())
        return
    _show(found)
    if figure is not None:
        say(f"written: {figure}")


def _ranges(over: Sequence[str]) -> dict[str, str]:
    """Return the keys and their ranges."""
    ranges: dict[str, str] = {}
    for text in over:
        key, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--over {text}: write it as KEY=LOW:HIGH, such as workload.arrivals.rate_rps=4:32")
        if key.strip() in ranges:
            raise InputError(f"--over {text}: the key has another range already")
        ranges[key.strip()] = values
    axes_of(ranges, "--over")  # before anything is done
    return ranges


def _show(found: GlobalSensitivity) -> None:
    for name, written in found.factors.items():
        say(f"{name}: {written}")
    names = [one.name for one in found.rows[0].indices]
    titles = ("factor", *(_TITLES.get(name, name) for name in names))
    for (policy, metric), rows in _grouped(found.rows).items():
        say(f"{policy}: {metric_label(metric)}")
        cells = [[row.factor, *map(_cell, row.indices)] for row in sorted(rows, key=_strength, reverse=True)]
        print_rows(titles, cells, left=("factor",), wrapped=("factor",))
    say(_ABOUT[found.method])
    say(
        f"{len(found.sweep.cells)} different points, {found.replications} replications of each on the same random "
        "numbers; 95 % intervals by the bootstrap over the points"
    )
    for line in (*about_percentiles([row.metric for row in found.rows]), *found.notes):
        say(line)


def _grouped(rows: Sequence[Moved]) -> dict[tuple[str, str], list[Moved]]:
    """Return the rows of each policy and metric."""
    found: dict[tuple[str, str], list[Moved]] = {}
    for row in rows:
        found.setdefault((row.policy, row.metric), []).append(row)
    return found


def _strength(row: Moved) -> float:
    """Return how much a factor moves the metric."""
    chief = next(one for one in row.indices if one.name in ("mu_star", "ST"))
    return chief.value or 0.0


def _cell(one: Index) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "-"
    return f"{one.value:.3g} [{one.low:.3g}, {one.high:.3g}]"
