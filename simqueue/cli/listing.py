"""``simqueue list``: the names a scenario can use, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from simqueue.cli.columns import Row, listed, terminal_width

app = typer.Typer(help="List what a scenario can name.", rich_markup_mode=None, add_completion=False)


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

    _print(model_rows(), "parameters_b", "active_b", "weights_gb", "kv_bytes_per_token", "max_position_tokens")


@app.command("gpus")
def gpus() -> None:
    """GPUs: `gpu: NAME`."""
    from simqueue.hardware import gpu_rows

    _print(gpu_rows(), "memory_mib", "bandwidth_gb_per_s", "dense_bf16_tflops", "fp8_tflops")


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


def _print(rows: Sequence[Row], *essential: str) -> None:
    """Print rows in columns that are the keys of the first; `essential` ones where a terminal is narrow."""
    for line in listed(rows, terminal_width(), essential) if rows else ["none"]:
        typer.echo(line)
