"""``simqueue capacity``: what each policy can sustain, without a simulation; with ``--slo`` see `capacity_slo`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from simqueue import figures
from simqueue.cli.actions.capacity_slo import Search, searched
from simqueue.cli.actions.common import check_figure, load_scenario, print_json
from simqueue.cli.actions.screen import print_by_name, progress_bar
from simqueue.errors import InputError
from simqueue.execution import Executor
from simqueue.experiment.carried import carried
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.experiment.rates import SHARES, curves, simulated
from simqueue.outputs import Outputs, Place
from simqueue.scenario import ResolvedScenario

_ROWS = (
    ("capacity", "req/s", "capacity_rps"),
    ("at least", "req/s", "capacity_low_rps"),
    ("at most", "req/s", "capacity_high_rps"),
    ("simulated backlog", "req/s", "simulated_rps"),
    ("+-", "req/s", "simulated_half_width_rps"),
    ("limited by", "", "binding"),
    *(
        (f"{name} alone", "req/s", f"limits_rps.{name}")
        for name in ("slots", "tokens", "kv", "compute", "front end", "router")
    ),
    ("step at capacity", "ms", "saturated_step_ms"),
    ("running at capacity", "", "saturated_running"),
    ("load", "", "load"),
    ("TPOT, estimate", "ms", "estimated_tpot_ms"),
    ("TTFT, estimate", "ms", "estimated_ttft_ms"),
    ("E2EL, estimate", "ms", "estimated_e2el_ms"),
    ("running, estimate", "", "estimated_running"),
)
"""Label, unit and key of each row of the table."""
SIMULATED_REQUESTS = 2000
_ACCURATE = 3
"""Percent by which the closed form was off where it is not in doubt, at P90."""
_ON_DEMAND = (
    "capacity_low_rps",
    "capacity_high_rps",
    "simulated_rps",
    "simulated_half_width_rps",
    "limits_rps.front end",
)


def capacity(
    scenario: str,
    set_: list[str] | None,
    seed: int | None,
    slo: list[str] | None,
    attainment: float | None,
    precision: float | None,
    max_runs: int | None,
    budget_s: float | None,
    with_model_error: bool,
    json_: bool,
    check: bool,
    figure: Path | None,
    simulate: bool,
    replications: int,
    requests: int | None,
    workers: Executor,
    quiet: bool,
) -> None:
    """Print capacity, load and estimates of each policy, and draw them if a figure is asked for."""
    loaded = load_scenario(scenario, set_, seed).resolve()
    only_law = {"--check": check, "--simulate": simulate}
    only_search = {
        "--attainment": attainment,
        "--precision": precision,
        "--max-runs": max_runs,
        "--budget-s": budget_s,
        "--with-model-error": with_model_error or None,
    }
    if slo:
        for name, given in only_law.items():
            if given:
                raise InputError(f"{name}: cannot be combined with --slo")
        wanted = Search(slo, attainment, precision, requests, max_runs, budget_s, with_model_error)
        searched(loaded, wanted, figure, workers, json_=json_, quiet=quiet)
        return
    for name, value in only_search.items():
        if value is not None:
            raise InputError(f"{name}: needs --slo")
    if simulate and figure is None:
        raise InputError("--simulate: needs --figure FILE to draw the points in")
    check_figure(figure)
    with Outputs() as outputs:
        place = None if figure is None else outputs.file(figure)
        found = policy_loads(loaded)
        values = {name: one.plain() for name, one in found.items()}
        if check:
            _add_simulated(found, values, loaded)
        if json_:
            print_json(values)
        else:
            _show(found, values)
        if place is not None:
            points = (replications, requests or SIMULATED_REQUESTS) if simulate else None
            _draw(loaded, place, points, workers, quiet=quiet)
            if not json_:
                typer.echo(f"written: {figure}")


def _add_simulated(
    found: Mapping[str, PolicyLoad], values: Mapping[str, dict[str, Any]], scenario: ResolvedScenario
) -> None:
    """Add what a backlog of each policy carries; None where none can be made, as without a capacity."""
    backlogs = carried(scenario)
    for name, of_policy in values.items():
        one = backlogs.get(name)
        of_policy["simulated_rps"] = None if one is None else one.rate_rps
        of_policy["simulated_half_width_rps"] = None if one is None else one.half_width_rps
        of_policy["note"] = "; ".join(_notes(found[name], of_policy)) or None


def _show(found: Mapping[str, PolicyLoad], values: Mapping[str, dict[str, Any]]) -> None:
    """Print the table and how accurate it is; raise InputError if no policy has a capacity."""
    if not any(one.capacity for one in found.values()):
        raise InputError("; ".join(f"{name}: no capacity, {one.why_not}" for name, one in found.items()))
    shown = [row for row in _ROWS if _is_shown(row[2], values)]
    lines = [(label, unit, [_cell(one, key) for one in values.values()]) for label, unit, key in shown]
    print_by_name(tuple(values), lines)
    accuracy = _accuracy(found, values)
    if accuracy:
        typer.echo(f"accuracy: {accuracy}")
    names: dict[str, list[str]] = {}
    for name, one in found.items():
        for note in _notes(one, values[name]):
            names.setdefault(note, []).append(name)
    for note, whose in names.items():
        typer.echo(f"{', '.join(whose)}: {note}")


def _notes(found: PolicyLoad, values: Mapping[str, Any]) -> list[str]:
    difference = _difference(found, values)
    return [difference, *found.notes] if difference else found.notes


def _is_shown(key: str, values: Mapping[str, dict[str, Any]]) -> bool:
    """Bounds, simulated rates and front ends are shown only if there are any."""
    return key not in _ON_DEMAND or any(_cell(one, key) != "-" for one in values.values())


def _accuracy(found: Mapping[str, PolicyLoad], values: Mapping[str, dict[str, Any]]) -> str:
    """Return how accurate the values are of which nothing else is said, or an empty text."""
    known = [name for name, one in found.items() if one.capacity]
    sure = [name for name in known if not (found[name].doubt or _difference(found[name], values[name]))]
    whose = "" if sure == known else f" of {', '.join(sure)}"
    of_capacity = [f"capacity{whose} within {_ACCURATE} %"] if sure else []
    estimated = any(one.estimate for one in found.values())
    of_estimates = ["TPOT within 6 %, TTFT within 10-20 %"] if estimated else []
    return "; ".join([*of_capacity, *of_estimates])


def _difference(found: PolicyLoad, values: Mapping[str, Any]) -> str:
    """Return that a simulated backlog does not agree with the capacity, if there is one and it does not."""
    rate_rps, half_rps = values.get("simulated_rps"), values.get("simulated_half_width_rps")
    if rate_rps is None or half_rps is None or found.capacity is None:
        return ""
    low_rps, high_rps = found.low_rps, found.high_rps
    if not found.doubt:
        low_rps, high_rps = ((1 + sign * _ACCURATE / 100) * found.capacity.max_rate_rps for sign in (-1, 1))
    if (low_rps or 0) - half_rps <= rate_rps <= (high_rps or math.inf) + half_rps:
        return ""
    return f"the simulated backlog is {abs(rate_rps / found.capacity.max_rate_rps - 1):.0%} away: the capacity is wrong"


def _cell(values: Mapping[str, Any], key: str) -> str:
    outer, _, inner = key.partition(".")
    value = values.get(outer)
    if inner and value is not None:
        if inner not in value:
            return "-"
        value = value[inner] if value[inner] is not None else "no limit"
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,.4g}"


def _draw(
    scenario: ResolvedScenario, place: Place, simulate: tuple[int, int] | None, workers: Executor, *, quiet: bool
) -> None:
    """Draw the figure, with simulated points of that many replications and requests if they are given."""
    lines = curves(scenario)
    if not lines:
        raise InputError("capacity: there is no formula for the capacity of any policy of this scenario")
    points = []
    if simulate is not None:
        replications, requests = simulate
        rates = sorted({round(share * line.capacity_rps, 6) for line in lines for share in SHARES})
        size = {"replications": replications, "requests": requests}
        with progress_bar(scenario.name, quiet=quiet) as progress:
            points = simulated(scenario, rates, **size, workers=workers, progress=progress)
    figures.write(figures.capacity_figure(lines, points, scenario.name), place)
