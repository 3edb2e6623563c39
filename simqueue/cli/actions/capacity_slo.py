"""``simqueue capacity --slo``: the highest rate at which each policy keeps limits on latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simqueue import figures
from simqueue.cli.actions.common import check_figure, print_json, say
from simqueue.cli.actions.screen import print_by_name, progress_bar
from simqueue.decisions.answers import Answer, Answers
from simqueue.decisions.capacity import MOST_RUNS, PRECISION, capacity
from simqueue.execution import Executor
from simqueue.outputs import Outputs
from simqueue.report.lines import number
from simqueue.scenario import ResolvedScenario


@dataclass(frozen=True, slots=True)
class Search:
    """What is asked for with ``--slo``; None: the default."""

    slo: Sequence[str]
    attainment: float | None
    precision: float | None
    requests: int | None
    max_runs: int | None
    budget_s: float | None
    with_model_error: bool


def searched(
    scenario: ResolvedScenario,
    wanted: Search,
    figure: Path | None,
    workers: Executor,
    *,
    json_: bool,
    quiet: bool,
) -> None:
    """Search the capacities, print them, and draw them if a figure is asked for."""
    check_figure(figure)
    with Outputs() as outputs:
        place = None if figure is None else outputs.file(figure)
        with progress_bar(scenario.name, quiet=quiet, timed=True) as progress:
            found = capacity(
                scenario,
                slo=wanted.slo,
                attainment=wanted.attainment,
                precision=PRECISION if wanted.precision is None else wanted.precision,
                requests=wanted.requests,
                max_runs=wanted.max_runs or MOST_RUNS,
                budget_s=wanted.budget_s,
                with_model_error=wanted.with_model_error,
                progress=progress,
                workers=workers,
            )
        if place is not None:
            figures.write(found.plot(), place)
        if json_:
            print_json(found.plain())
            return
        _show(found)
        if place is not None:
            say(f"written: {figure}")


def _show(found: Answers) -> None:
    print_by_name([one.policy for one in found.each], list(_lines(found)))
    say(f"conditions: {found.conditions}, {found.of}")
    names: dict[str, list[str]] = {}
    for one in found.each:
        for line in _said(one):
            names.setdefault(line, []).append(one.policy)
    for line, whose in names.items():
        say(f"{', '.join(whose)}: {line}")


def _lines(found: Answers) -> Iterator[tuple[str, str, list[str]]]:
    """Yield label, unit and texts of each line of the table."""
    each = found.each
    unit = "sessions/s" if each[0].unit.startswith("sessions") else "req/s"
    yield "capacity", unit, [number(one.capacity_rps) for one in each]
    yield "at least", unit, [number(one.low_rps) for one in each]
    yield "at most", unit, [number(one.high_rps) for one in each]
    yield "limited by", "", [one.binding or "-" for one in each]
    for name in each[0].attained:
        yield f"{name} there", "", [number(one.attained.get(name)) for one in each]
    yield "load there", "", [number(one.load) for one in each]
    yield "output there", "tok/s", [number(one.output_throughput) for one in each]
    yield "GPUs", "", [str(one.gpus) for one in each]
    yield "per GPU", unit, [number(one.per_gpu_rps) for one in each]
    if any(one.requests_per_usd is not None for one in each):
        yield "requests per USD", "", [number(one.requests_per_usd) for one in each]
    yield "runs", "", [str(one.runs) for one in each]
    yield "stopped by", "", [one.stopped for one in each]


def _said(one: Answer) -> Iterator[str]:
    """Yield what the table does not show of an answer."""
    if one.why_not:
        yield one.why_not
    if one.no_price:
        yield one.no_price
    if one.model is not None:
        yield _about_model(one)
    yield from one.notes


def _about_model(one: Answer) -> str:
    model = one.model
    if model is None or model.share is None:
        return f"the interval has no model error: {'' if model is None else model.reason}"
    ends = f"{number(model.slow_rps)} to {number(model.fast_rps)} {one.unit}"
    off = f"step times off by {100 * model.share:.1f} % ({model.reason})"
    return f"with {off} the capacity is {ends}; the interval holds both"
