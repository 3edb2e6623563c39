"""``simqueue workload``: describe the requests of a scenario without running it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from simqueue import figures
from simqueue.cli.actions.common import load_scenario, print_json_text, say
from simqueue.cli.actions.screen import print_by_name
from simqueue.errors import InputError, inside
from simqueue.outputs import Outputs, Place
from simqueue.scenario import ResolvedScenario
from simqueue.scenario.resolved import workload_path
from simqueue.workload.describe import PERCENTILES, LengthDescription, WorkloadDescription, describe

_RESULTS = Path("results")


def workload(
    scenario: str, set_: list[str] | None, seed: int | None, out: Path | None, json_: bool, no_figures: bool
) -> None:
    """Describe each workload of a scenario: as JSON, or as a table and a figure."""
    if json_ and out is not None:
        raise InputError("workload: --out cannot be used with --json, which draws no figure")
    loaded = load_scenario(scenario, set_, seed).resolve()
    if json_:
        described = _described(loaded)
        values = {one.name: _values(one) for one in described}
        print_json_text(json.dumps(values, allow_nan=False, ensure_ascii=False))
        return
    folder = out or _RESULTS / f"{loaded.name}-workload"
    with Outputs() as outputs:
        places = [] if no_figures else [outputs.file(folder / f"workload.{kind}") for kind in ("png", "svg")]
        described = _described(loaded)
        for line in (note for one in described for note in one.notes):
            say(f"note: {line}")
        _show(described)
        if places:
            _draw(described, places)


def _draw(described: Sequence[WorkloadDescription], places: Sequence[Place]) -> None:
    figure = figures.workload_figure(described)
    typer.echo("written:")
    for place in places:
        figures.write(figure, place)
        typer.echo(f"  {place.path}")


def _described(scenario: ResolvedScenario) -> list[WorkloadDescription]:
    described = []
    for name, settings in scenario.workloads.items():
        with scenario.written.locating(), inside(*workload_path(name)):
            described.append(describe(name or "workload", settings, seed=scenario.seed, base_dir=scenario.base_dir))
    return described


def _values(one: WorkloadDescription) -> dict[str, Any]:
    """Return everything about a workload as JSON values: None if undefined."""
    return {
        "source": one.source,
        "requests": one.requests,
        "span_s": one.span_s,
        "rate_rps": one.rate_rps,
        "law_rate_rps": one.law_rate_rps,
        "gap_cv": one.cv,
        "law_gap_cv": one.law_cv,
        "law_dispersion": one.law_dispersion,
        **_length_values("prompt", one.prompt),
        **_length_values("output", one.output),
        "prefix_reuse": one.prefix_reuse,
        "notes": list(one.notes),
    }


def _length_values(name: str, found: LengthDescription) -> dict[str, Any]:
    percentiles: dict[int, Any] = {**(found.percentiles or dict.fromkeys(PERCENTILES))}
    return {
        f"law_mean_{name}_tokens": found.law_mean,
        f"mean_{name}_tokens": found.mean,
        **{f"p{q}_{name}_tokens": value for q, value in percentiles.items()},
        f"max_{name}_tokens": found.longest,
    }


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 3
    return f"{value:,.{digits}f}"


def _share(value: Any) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


_ROWS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("source", "source", _plain),
    ("requests", "requests", _plain),
    ("first to last arrival (s)", "span_s", _plain),
    ("arrival rate (1/s; sessions: of their starts)", "rate_rps", _plain),
    ("  of the distribution", "law_rate_rps", _plain),
    ("CV of the gaps", "gap_cv", _plain),
    ("  of the distribution", "law_gap_cv", _plain),
    ("index of dispersion of the distribution", "law_dispersion", _plain),
    *(
        row
        for name in ("prompt", "output")
        for row in (
            (f"{name} tokens: mean", f"mean_{name}_tokens", _plain),
            ("  of the distribution", f"law_mean_{name}_tokens", _plain),
            *((f"  p{q}", f"p{q}_{name}_tokens", _plain) for q in PERCENTILES),
            ("  max", f"max_{name}_tokens", _plain),
        )
    ),
    ("prompt tokens seen before", "prefix_reuse", _share),
)
"""Label, key and format of each row of the table. A row is left out if it is undefined for all workloads."""


def _show(described: Sequence[WorkloadDescription]) -> None:
    """Print one line per quantity and one column per workload."""
    values = [_values(one) for one in described]
    lines = [
        (label, "", [plain(found[key]) for found in values])
        for label, key, plain in _ROWS
        if any(found[key] is not None for found in values)
    ]
    print_by_name([one.name for one in described], lines)
