"""``simqueue tune``: the cheapest system that keeps its limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simqueue.cli.actions.common import check_figure, print_json, print_warnings, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.decisions.tuning.answer import Standing, Tuning
from simqueue.decisions.tuning.files import MARKER
from simqueue.decisions.tuning.tune import tune as search
from simqueue.errors import RunError
from simqueue.execution import Executor
from simqueue.figures.canvas import write
from simqueue.outputs import Outputs
from simqueue.report.lines import metric_label, number

_MOST_REASONS = 8
_MOST_NAMED = 5


def tune(
    scenario: str,
    space: list[str] | None,
    slo: list[str] | None,
    attainment: float | None,
    minimize: str | None,
    maximize: str | None,
    tie: str | None,
    zone: str | None,
    policy: str | None,
    confidence: float | None,
    max_replications: int | None,
    max_runs: int | None,
    budget_s: float | None,
    shown: int | None,
    with_model_error: bool,
    set_: list[str] | None,
    seed: int | None,
    out: Path | None,
    figure: Path | None,
    workers: Executor,
    json_: bool,
    quiet: bool,
) -> None:
    """Search, and print the answer, as a table or as JSON."""
    check_figure(figure)
    with Outputs() as outputs:
        folder = None if out is None else outputs.folder(out, MARKER)
        drawn = None if figure is None else outputs.file(figure)
        with progress_bar("tune", quiet=quiet) as progress:
            found = search(
                scenario,
                space or (),
                slo,
                attainment=attainment,
                minimize=minimize,
                maximize=maximize,
                tie=tie,
                zone=zone,
                policy=policy,
                confidence=confidence,
                max_replications=max_replications,
                max_runs=max_runs,
                budget_s=budget_s,
                shown=shown,
                with_model_error=with_model_error or None,
                overrides=set_ or (),
                seed=seed,
                progress=progress,
                workers=workers,
            )
        written = [] if folder is None else found.save(folder)
        if drawn is not None and figure is not None:
            write(found.figure(), drawn)
            written.append(figure)
    if json_:
        print_json(found.plain())
    else:
        _show(found)
        for path in written:
            say(f"written: {path}")
    if found.failed:
        first = found.failed[0]
        raise RunError(f"{len(found.failed)} of the systems failed; the first one: {first.label}: {first.reason}")


def _show(found: Tuning) -> None:
    print_warnings(found.notes)
    if found.top:
        titles = ("system", "cost", *_limit_titles(found.top[0]), metric_label(found.tie), "runs", "note")
        rows = [_cells(one) for one in found.top]
        print_rows(titles, rows, left=("system", "note"), wrapped=("system", "note"))
    for line in _lines(found):
        say(line)


def _limit_titles(one: Standing) -> Iterator[str]:
    return (str(judged.condition) for judged in one.limits)


def _cells(one: Standing) -> list[str]:
    metric = "-" if one.metric is None else number(one.metric.value)
    return [one.label, _cost(one), *map(_value, one.limits), metric, str(one.replications), one.reason or one.state]


def _value(judged: object) -> str:
    value, low, high = (getattr(judged, name) for name in ("value", "low", "high"))
    if value is None:
        return "-"
    return (
        number(value)
        if low is None or high is None or low == high
        else f"{number(value)} [{number(low)}, {number(high)}]"
    )


def _cost(one: Standing) -> str:
    gpus = f"{one.gpus} GPU{'s' if one.gpus != 1 else ''}"
    return gpus if one.usd_per_hour is None else f"{one.usd_per_hour:.2f} USD/h, {gpus}"


def _lines(found: Tuning) -> Iterator[str]:
    """Yield the answer, how sure it is, and why the others fell."""
    best, sure = found.best, f"{100 * found.confidence:g} %"
    if best is not None:
        yield f"best: {best.label} ({_cost(best)})"
        yield from _how_sure(found, sure)
    else:
        yield from _none(found)
    if found.at_errors is not None and best is not None:
        yield found.at_errors.line(best.label)
    fallen = list(found.fallen.items())
    for reason, count in fallen[:_MOST_REASONS]:
        yield f"  {count} of {len(found.standings)}: {reason}"
    if len(fallen) > _MOST_REASONS:
        yield f"  and {sum(count for _, count in fallen[_MOST_REASONS:])} for other reasons"
    spent = found.spent
    yield f"runs: {spent.runs} and {spent.short_runs} short ones, {spent.requests:,} requests"


def _how_sure(found: Tuning, sure: str) -> Iterator[str]:
    if found.stopped:
        yield f"the search ended early: {found.stopped}; a better system may not have been found"
        return
    by_cost = found.goal in ("USD per hour", "GPUs")
    better = f"has a {found.tie} that is better by {100 * found.zone:g} % or more"
    told = ["no cheaper system is known to keep the limits"] if by_cost else []
    told.append(f"none {'of the same cost' if by_cost else 'that keeps them'} that was compared {better}")
    yield f"with {sure} confidence: it keeps {found.limits}; {'; '.join(told)}"
    for title, group in (
        ("cannot be told whether they keep the limits", found.unknown),
        ("not told apart from it", found.not_told_apart),
        ("looked worse after a few runs, and were not run further", found.looked_worse),
    ):
        if group:
            more = f"; and {len(group) - _MOST_NAMED} more" if len(group) > _MOST_NAMED else ""
            yield f"{title}: {'; '.join(one.label for one in group[:_MOST_NAMED])}{more}"


def _none(found: Tuning) -> Iterator[str]:
    """Yield that there is no answer, and what is nearest to one."""
    if found.stopped:
        yield f"no decision: {found.stopped}"
    elif found.unknown:
        yield f"no system here is known to meet {found.limits}"
    else:
        yield f"no system here meets {found.limits}"
    nearest = found.nearest
    if nearest is not None:
        missed = f"{nearest.reason}: {nearest.margin:.3g} times the limit"
        yield f"the nearest one: {nearest.label} ({_cost(nearest)}): {missed}"
