"""``simqueue capacity``: what each policy can carry, without a simulation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simqueue.cli.common import Debug, Seed, Set, Workers, console
from simqueue.errors import InputError

if TYPE_CHECKING:
    from simqueue.experiment.load import PolicyLoad
    from simqueue.scenario import Scenario


def capacity(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a packaged one.")
    ],
    set_: Set = None,
    seed: Seed = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Draw throughput, TPOT and TTFT over the rate (.png or .svg)."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Add simulated points with intervals to the figure.")
    ] = False,
    replications: Annotated[int, typer.Option("--replications", min=2, help="Runs at each simulated rate.")] = 5,
    requests: Annotated[int, typer.Option("--requests", min=100, help="Requests in each of these runs.")] = 2000,
    workers: Workers = None,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Print the largest rate each policy can carry, what limits it, and estimated latencies at the scenario's rate.

    Leaves with 2 if no policy has a capacity that a law gives; with --json the reasons are in `note`.
    """
    from simqueue.experiment.load import policy_loads
    from simqueue.scenario import load
    from simqueue.scenario.library import find

    loaded = load(find(scenario), set_ or (), seed)
    if simulate and figure is None:
        raise InputError("--simulate needs --figure FILE, where its points are drawn")
    if figure is not None and figure.suffix not in (".png", ".svg"):
        raise InputError(f"--figure {figure}: must end in .png or .svg")
    found = policy_loads(loaded)
    if json_:
        import json

        typer.echo(json.dumps({name: plain(one) for name, one in found.items()}, allow_nan=False))
    elif any(one.capacity for one in found.values()):
        _show(found)
    else:
        raise InputError("; ".join(f"{name}: no capacity, {one.why_not}" for name, one in found.items()))
    if figure is not None:
        _draw(loaded, figure, simulate=simulate, replications=replications, requests=requests, workers=workers)
        if not json_:
            typer.echo(f"written: {figure}")


def plain(found: PolicyLoad) -> dict[str, Any]:
    """Return what is known as plain values, None where undefined or without a limit."""
    limit, point = found.capacity, found.estimate
    return {
        "capacity_rps": limit.max_rate_rps if limit else None,
        "binding": limit.binding if limit else None,
        "limits_rps": {name: _finite(rate) for name, rate in limit.limits_rps.items()} if limit else None,
        "steps_per_request": limit.steps_per_request if limit else None,
        "saturated_step_ms": 1000 * limit.step_s if limit else None,
        "saturated_running": limit.running if limit else None,
        "load": found.load,
        "estimated_tpot_ms": 1000 * point.tpot_s if point else None,
        "estimated_ttft_ms": 1000 * point.ttft_s if point else None,
        "estimated_e2el_ms": 1000 * point.e2el_s if point else None,
        "estimated_running": point.running if point else None,
        "note": found.why_not or found.caution or None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _show(found: dict[str, PolicyLoad]) -> None:
    from rich import box
    from rich.table import Table

    values = {name: plain(one) for name, one in found.items()}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in values:
        table.add_column(name, justify="right")
    rows = [
        ("capacity (req/s)", "capacity_rps"),
        ("limited by", "binding"),
        *((f"  {name} alone (req/s)", f"limits_rps.{name}") for name in ("slots", "tokens", "kv", "compute")),
        ("step at capacity (ms)", "saturated_step_ms"),
        ("running at capacity", "saturated_running"),
        ("load", "load"),
        ("TPOT, estimate (ms)", "estimated_tpot_ms"),
        ("TTFT, estimate (ms)", "estimated_ttft_ms"),
        ("E2EL, estimate (ms)", "estimated_e2el_ms"),
        ("running, estimate", "estimated_running"),
    ]
    for label, key in rows:
        table.add_row(label, *(_cell(one, key) for one in values.values()))
    console().print(table)
    typer.echo(_accuracy(found))
    for name, one in found.items():
        if said := one.why_not or one.caution:
            typer.echo(f"{name}: {said}")


def _accuracy(found: dict[str, PolicyLoad]) -> str:
    sure = [name for name, one in found.items() if one.capacity and not one.caution]
    doubtful = any(one.caution for one in found.values())
    whose = f" of {', '.join(sure)}" if doubtful else ""
    capacity_part = f"capacity{whose}: good to some 2-3 %; " if sure else ""
    return f"{capacity_part}TPOT: to some 6 %, TTFT: to 10-20 %, below a load of 0.95"


def _cell(values: dict[str, Any], key: str) -> str:
    outer, _, inner = key.partition(".")
    value = values[outer]
    if inner and value is not None:
        if inner not in value:
            return "-"
        value = value[inner] if value[inner] is not None else "no limit"
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,.4g}"


def _draw(
    scenario: Scenario, file: Path, *, simulate: bool, replications: int, requests: int, workers: int | None
) -> None:
    from simqueue.experiment.rates import SHARES, curves, simulated
    from simqueue.figures.capacity import capacity_figure, save

    lines = curves(scenario)
    if not lines:
        raise InputError("capacity: no policy of this scenario has a capacity law")
    points = []
    if simulate:
        rates = sorted({round(share * line.capacity_rps, 6) for line in lines for share in SHARES})
        points = simulated(scenario, rates, replications=replications, requests=requests, workers=workers)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        save(capacity_figure(lines, points, scenario.name), file)
    except OSError as error:
        raise InputError(f"--figure {file}: cannot be written: {error.strerror}") from error
