"""``simqueue list`` and ``init``: what comes with the package. Nothing else of the package is loaded for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import typer

from simqueue.cli.columns import Row, listed, terminal_width
from simqueue.errors import InputError
from simqueue.outputs import Outputs

_SCHEMA = "simqueue.schema.json"
_MODELINE = f"# yaml-language-server: $schema={_SCHEMA}\n"
"""What tells an editor with a YAML language server the schema of a file."""


def init(file: Path) -> None:
    """Write the first scenario to a new file, and the schema that editors check it with beside it."""
    text = files("simqueue.cli").joinpath("first_scenario.yaml").read_text(encoding="utf-8")
    schema = file.parent / _SCHEMA
    with Outputs() as outputs:
        scenario_place, schema_place = outputs.file(file, replace=False), outputs.file(schema)
        _check_schema(schema)
        content = import_module("simqueue.scenario.schema").json_schema()
        scenario_place.write_text(_MODELINE + text)
        schema_place.write_text(json.dumps(content, indent=1) + "\n")
    typer.echo(f"written: {file}; run it with: simqueue run {file}")
    typer.echo(f"written: {schema}, with which editors complete and check scenarios")


def _check_schema(schema: Path) -> None:
    """Check that a file of the schema's name is an earlier schema."""
    if schema.exists() and '"title": "simqueue scenario"' not in schema.read_text(encoding="utf-8", errors="replace"):
        raise InputError(f"{schema}: exists already and is no schema of simqueue; choose another folder")


def policies(json_: bool) -> None:
    """Print the schedulers."""
    _print("simqueue.schedulers", "policy_rows", as_json=json_)


def engines(json_: bool) -> None:
    """Print the engines and their versions."""
    _print("simqueue.engines", "engine_rows", as_json=json_)


def routers(json_: bool) -> None:
    """Print the routers."""
    _print("simqueue.routing", "router_rows", as_json=json_)


def models(json_: bool) -> None:
    """Print the models."""
    essential = ("parameters_b", "active_b", "weights_gb", "kv_bytes_per_token", "max_position_tokens")
    _print("simqueue.hardware", "model_rows", essential, as_json=json_)


def gpus(json_: bool) -> None:
    """Print the GPUs."""
    essential = ("memory_mib", "bandwidth_gb_per_s", "dense_bf16_tflops", "fp8_tflops")
    _print("simqueue.hardware", "gpu_rows", essential, as_json=json_)


def presets(json_: bool) -> None:
    """Print the step-time presets."""
    _print("simqueue.steptime", "preset_rows", as_json=json_)


def traces(json_: bool) -> None:
    """Print the traces in the package."""
    _print("simqueue.workload.traces.summaries", "trace_rows", as_json=json_)


def scenarios(json_: bool) -> None:
    """Print the scenarios in the package."""
    _print("simqueue.scenario.library", "scenario_rows", as_json=json_)


def _print(module: str, function: str, essential: Sequence[str] = (), *, as_json: bool) -> None:
    """Print the rows that a function of a module returns.

    Parameters
    ----------
    module, function : str
        Imported here, because a list needs only its own part of the package.
    essential : sequence of str
        Columns to keep on a narrow terminal.
    as_json : bool
        Print a list of JSON objects instead of a table, with all columns.
    """
    found: Sequence[Any] = getattr(import_module(module), function)()
    rows: list[Row] = [row if isinstance(row, dict) else asdict(row) for row in found]
    if as_json:
        typer.echo(json.dumps(rows, allow_nan=False, ensure_ascii=False))
        return
    for line in listed(rows, terminal_width(), essential) if rows else ["none"]:
        typer.echo(line)
