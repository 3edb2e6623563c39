"""``simqueue workload``: what the traffic of a scenario is like, without running it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simqueue.cli.common import Debug, Seed, Set, console
from simqueue.errors import inside

if TYPE_CHECKING:
    from rich.table import Table

    from simqueue.workload.describe import LengthDescription, WorkloadDescription

RESULTS = Path("results")


def workload(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Scenario file, or a name from `simqueue list scenarios`.")
    ],
    set_: Set = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the figure. Default: results/NAME-workload."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object and draw nothing.")] = False,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Draw no figure.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Describe the traffic of a scenario: rate, burstiness, lengths, shared prefixes.

    Figures are those of replication 0 beside what the laws state. Policies are neither needed nor run.
    """
    from simqueue.scenario import load
    from simqueue.scenario.library import find
    from simqueue.workload.describe import describe

    loaded = load(find(scenario), set_ or (), seed)
    workloads = loaded.workloads or ({} if loaded.workload is None else {"workload": loaded.workload})
    described = []
    for name, settings in workloads.items():
        with loaded.telling_where(), inside(f"workloads.{name}" if loaded.workloads else name):
            described.append(describe(name, settings, seed=loaded.seed, base_dir=loaded.base_dir))
    if json_:
        typer.echo(json.dumps({one.name: _values(one) for one in described}, allow_nan=False, ensure_ascii=False))
        return
    for line in (note for one in described for note in one.notes):
        typer.echo(f"note: {line}")
    console().print(_table(described))
    if not no_figures:
        from simqueue.figures.workload import save_workload_figure

        typer.echo("written:")
        for path in save_workload_figure(described, out or RESULTS / f"{loaded.name}-workload"):
            typer.echo(f"  {path}")


def _values(one: WorkloadDescription) -> dict[str, Any]:
    """Return everything about a workload as JSON has it; None where undefined."""
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
    from simqueue.workload.describe import PERCENTILES

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
    ("from first to last arrival (s)", "span_s", _plain),
    ("offered rate (1/s; of conversations: their starts)", "rate_rps", _plain),
    ("  as its law states", "law_rate_rps", _plain),
    ("CV of the gaps", "gap_cv", _plain),
    ("  as its law states", "law_gap_cv", _plain),
    ("index of dispersion, by law", "law_dispersion", _plain),
    *(
        row
        for name in ("prompt", "output")
        for row in (
            (f"{name} tokens: mean", f"mean_{name}_tokens", _plain),
            ("  as its law states", f"law_mean_{name}_tokens", _plain),
            *((f"  p{q}", f"p{q}_{name}_tokens", _plain) for q in (50, 90, 95, 99)),
            ("  longest", f"max_{name}_tokens", _plain),
        )
    ),
    ("prompt tokens seen before", "prefix_reuse", _share),
)


def _table(described: Sequence[WorkloadDescription]) -> Table:
    """Return one row a quantity and one column a workload."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    values = [_values(one) for one in described]
    for one in described:
        table.add_column(one.name, justify="right", overflow="fold")
    for label, key, shown in _ROWS:
        if any(found[key] is not None for found in values):
            table.add_row(label, *(shown(found[key]) for found in values))
    return table
