"""``simqueue list`` and ``init``: what comes with the package. Nothing else of the package is loaded for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer

from simqueue.cli.columns import Row, listed, terminal_width
from simqueue.errors import InputError


def init(file: Path) -> None:
    """Write the first scenario to a new file."""
    text = files("simqueue.cli").joinpath("first_scenario.yaml").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise InputError(f"{file}: exists already and is not overwritten; give another file name") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None
    typer.echo(f"written: {file}; run it with: simqueue run {file}")


def policies() -> None:
    """Print the schedulers."""
    _print("simqueue.schedulers", "policy_rows")


def engines() -> None:
    """Print the engines and their versions."""
    _print("simqueue.engines", "engine_rows")


def models() -> None:
    """Print the models."""
    essential = ("parameters_b", "active_b", "weights_gb", "kv_bytes_per_token", "max_position_tokens")
    _print("simqueue.hardware", "model_rows", essential)


def gpus() -> None:
    """Print the GPUs."""
    _print("simqueue.hardware", "gpu_rows", ("memory_mib", "bandwidth_gb_per_s", "dense_bf16_tflops", "fp8_tflops"))


def presets() -> None:
    """Print the step-time presets."""
    _print("simqueue.steptime", "preset_rows")


def traces() -> None:
    """Print the traces in the package."""
    _print("simqueue.workload.traces.summaries", "trace_rows")


def scenarios() -> None:
    """Print the scenarios in the package."""
    _print("simqueue.scenario.library", "scenario_rows")


def _print(module: str, function: str, essential: Sequence[str] = ()) -> None:
    """Print the rows that a function of a module returns.

    Parameters
    ----------
    module, function : str
        Imported here, because a list needs only its own part of the package.
    essential : sequence of str
        Columns to keep on a narrow terminal.
    """
    found: Sequence[Any] = getattr(import_module(module), function)()
    rows: list[Row] = [row if isinstance(row, dict) else asdict(row) for row in found]
    for line in listed(rows, terminal_width(), essential) if rows else ["none"]:
        typer.echo(line)
