"""``simqueue list``: the names a scenario can use, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from simqueue.cli.common import console

app = typer.Typer(help="List what a scenario can name.", rich_markup_mode=None, add_completion=False)

Row = dict[str, Any]


@app.command("policies")
def policies() -> None:
    """Schedulers: `scheduler: NAME` in a policy."""
    from simqueue.schedulers import SCHEDULERS

    _print(
        [
            {
                "scheduler": name,
                "what it does": policy.summary,
                "its keys": ", ".join(policy.Settings.model_fields),
            }
            for name, policy in sorted(SCHEDULERS.items())
        ]
    )


@app.command("engines")
def engines() -> None:
    """Engines by version: `engine: NAME, version: "X"` in a policy."""
    from simqueue.engines import ENGINES

    _print([row for engine in ENGINES.values() for row in engine.rows()])


@app.command("models")
def models() -> None:
    """Models: `model: NAME`."""
    from simqueue.hardware import model_rows

    _print(model_rows())


@app.command("gpus")
def gpus() -> None:
    """GPUs: `gpu: NAME`."""
    from simqueue.hardware import gpu_rows

    _print(gpu_rows())


@app.command("presets")
def presets() -> None:
    """Presets: `{kind: roofline, preset: NAME}`."""
    from simqueue.steptime import preset_rows

    _print(preset_rows())


@app.command("traces")
def traces() -> None:
    """Packaged traces: `trace: {name: NAME}`."""
    from simqueue.workload.traces import trace_rows

    _print([asdict(row) for row in trace_rows()])


@app.command("scenarios")
def scenarios() -> None:
    """Packaged scenarios: `simqueue run NAME`."""
    from simqueue.scenario.library import headline, packaged_scenarios

    _print([{"scenario": name, "what it shows": headline(file)} for name, file in packaged_scenarios().items()])


def _print(rows: Sequence[Row]) -> None:
    """Print rows as a table whose columns are the keys of the first."""
    if not rows:
        typer.echo("none")
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(rows[0]):
        numeric = all(isinstance(row[column], int | float) for row in rows)
        title = column.replace("_", " ")  # so that it can be broken into lines
        table.add_column(title, justify="right" if numeric else "left", no_wrap=position == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
