"""``simqueue compare BASELINE RESULT``: what changed from one result to another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from simqueue.cli.actions.common import baseline_place, print_json, print_warnings, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.cli.failures import FAILED
from simqueue.decisions.baseline import write_baseline
from simqueue.decisions.changes import Change, Changes
from simqueue.decisions.comparing_results import changes
from simqueue.experiment.comparing import about_percentiles
from simqueue.outputs import Outputs
from simqueue.printable import shortened
from simqueue.report.lines import metric_label
from simqueue.statistics.intervals import Interval

_MOST_KEYS = 30
"""Keys that are shown; two scenarios that differ in more are not the same deployment."""
_METHODS = {
    "paired": "paired by replication: one seed, the same random numbers",
    "unpaired": "of independent replications (Welch): the seeds differ",
    "one run": "of single runs by batch means",
    "exact": "exact: nothing is random",
    "none": "without an interval",
}


def compare_results(
    baseline: str,
    result: str,
    metric: list[str] | None,
    limits: Sequence[str],
    strict: bool,
    kept: Path | None,
    json_: bool,
    quiet: bool,
    options: Mapping[str, Any],
) -> None:
    """Print what changed, as text or as JSON; exit with 1 if a limit is not kept."""
    with Outputs() as outputs:
        place = None if kept is None else baseline_place(outputs, kept)
        with progress_bar(result, quiet=quiet) as progress:
            found = changes(baseline, result, metrics=metric, limits=limits, progress=progress, **options)
        if place is not None:
            write_baseline(found.after, place)
    if json_:
        print_json(found.plain())
    else:
        _show(found)
        if kept is not None:
            say(f"written: {kept}")
    if found.limited("beyond") or (strict and found.limited("not told")):
        raise typer.Exit(FAILED)


def _show(found: Changes) -> None:
    """Print warnings of the later result, keys, changes and limits."""
    print_warnings(found.after.warnings)
    for one in found.keys[:_MOST_KEYS]:
        say(f"{one.key}: {_value(one.before)} -> {_value(one.after)}")
    if len(found.keys) > _MOST_KEYS:
        say(f"and {len(found.keys) - _MOST_KEYS} other keys")
    if not found.keys:
        say("no key of the scenario differs")
    for names, where in ((found.only_before, found.before), (found.only_after, found.after)):
        if names:
            say(f"only in {where.label}: {', '.join(names)}")
    limited = any(row.limits for row in found.rows)
    titles = ("policy", "metric", "before", "after", "difference", "relative", "verdict", *(["limit"] * limited))
    rows = [_cells(row)[: len(titles)] for row in found.rows]
    print_rows(titles, rows, left=("policy", "metric", "verdict"), wrapped=("verdict", "limit"))
    for line in _lines(found):
        say(line)


def _value(value: Any) -> str:
    """Return the value of a key as JSON, shortened; a text without quotes."""
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cells(row: Change) -> list[str]:
    limits = "; ".join(f"{str(one.limit).partition('=')[2]} {one.state}" for one in row.limits)
    return [
        row.policy,
        metric_label(row.metric),
        _number(row.before),
        _number(row.after),
        _interval(row.difference, 1, ""),
        _interval(row.relative, 100, " %"),
        row.verdict,
        limits,
    ]


def _lines(found: Changes) -> list[str]:
    share = f"{100 * found.before.confidence:g} %"
    lines = []
    for method in dict.fromkeys(row.method for row in found.rows if row.difference is not None):
        counts = dict.fromkeys(row.replications for row in found.rows if row.method == method)
        runs = ", ".join(f"{one}" if one == other else f"{one} and {other}" for one, other in counts)
        lines.append(f"differences {_METHODS[method]}; replications: {runs}")
    lines.append(
        f"each interval holds with {share} confidence by itself; verdicts of all rows together, and all limits too"
    )
    lines += about_percentiles([row.metric for row in found.rows])
    beyond, untold = found.limited("beyond"), found.limited("not told")
    lines += [f"beyond the limit: {one}" for one in beyond]
    lines += [f"cannot be told with these replications: {one}" for one in untold]
    within = found.limited("within")
    if beyond or untold or within:
        lines.append(f"limits: {len(within)} kept, {len(beyond)} not kept, {len(untold)} cannot be told")
    return lines


def _interval(found: Interval | None, scale: float, unit: str) -> str:
    if found is None:
        return "-"
    value = f"{scale * found.value:+.3g}{unit}"
    if found.low is None or found.high is None or found.low == found.high:
        return value
    return f"{value} [{scale * found.low:.3g}, {scale * found.high:.3g}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
