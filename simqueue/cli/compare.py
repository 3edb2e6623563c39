"""``simqueue compare``: do policies differ, and by how much, on the same traffic?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simqueue.cli.common import Debug, Replications, Seed, Set, Workers, console, replicated
from simqueue.errors import InputError

if TYPE_CHECKING:
    from simqueue.experiment.comparing import Compared
    from simqueue.scenario import Scenario

_REPLICATIONS = 10


def compare(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario of two policies or more.")],
    set_: Set = None,
    seed: Seed = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="POLICY", help="Compare with this one. Default: the first.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="COLUMN", help="Column of the summary; repeatable."),
    ] = None,
    replications: Replications = None,
    workers: Workers = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Compare policies replication by replication: difference and ratio with intervals, corrected by Holm.

    Without replications in the scenario, 10 are made.
    """
    from simqueue.cli.progress import progress_bar
    from simqueue.experiment import run
    from simqueue.experiment.comparing import DEFAULT_METRICS, compared

    loaded = _loaded(scenario, set_ or [], seed, replications)
    with progress_bar(loaded.name, quiet=quiet) as progress:
        result = run(loaded, progress=progress, workers=workers)
    rows = compared(result, baseline, metric or DEFAULT_METRICS)
    if json_:
        import json

        content = {"scenario": loaded.name, "warnings": list(result.warnings), "comparisons": [r.plain() for r in rows]}
        typer.echo(json.dumps(content, allow_nan=False))
        return
    for line in result.warnings:
        typer.echo(f"warning: {line}")
    _show(rows, result.confidence)


def _loaded(argument: str, overrides: list[str], seed: int | None, replications: int | None) -> Scenario:
    from simqueue.scenario import load
    from simqueue.scenario.library import find

    file = find(argument)
    loaded = load(file, replicated(overrides, replications), seed)
    if len(loaded.policies) < 2:
        raise InputError(f"{argument}: a comparison needs two policies, there is one")
    if loaded.replications == 1 and loaded.precision is None and replications is None:
        loaded = load(file, replicated(overrides, _REPLICATIONS), seed)
    return loaded


def _show(rows: list[Compared], confidence: float) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("metric", "policy", "baseline", "difference", "ratio", "p (Holm)", "verdict"):
        table.add_column(title, justify="right" if title in ("difference", "ratio", "p (Holm)") else "left")
    for row in rows:
        table.add_row(row.metric, row.policy, row.baseline, row.difference(), row.ratio(), row.p(), row.verdict)
    console().print(table)
    typer.echo(
        f"difference and ratio: policy against baseline, replication by replication, with {100 * confidence:g} % "
        "intervals; the verdict is after Holm's correction for all rows"
    )
