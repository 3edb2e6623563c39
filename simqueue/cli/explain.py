"""``simqueue explain``: what one step costs, term by term."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simqueue.cli.common import Debug, console
from simqueue.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simqueue.hardware import Gpu, Model
    from simqueue.steptime import Batch, Term


def explain(
    model: Annotated[str, typer.Option("--model", help="A name from `simqueue list models`, or a config.json.")],
    gpu: Annotated[str, typer.Option("--gpu", help="A name from `simqueue list gpus`, or a YAML file.")],
    preset: Annotated[
        str, typer.Option("--preset", help="A name from `simqueue list presets`, or a YAML file.")
    ] = "ideal",
    tensor_parallel: Annotated[int, typer.Option("--tensor-parallel", min=1, help="GPUs that share the model.")] = 1,
    decode: Annotated[int, typer.Option("--decode", min=0, help="Requests that decode in the step.")] = 0,
    context: Annotated[
        int, typer.Option("--context", min=1, help="Tokens that each of them attends to, its own included.")
    ] = 1024,
    prefill: Annotated[
        list[str] | None,
        typer.Option(
            "--prefill",
            metavar="[PAST:]NEW",
            help="A prompt piece: tokens already in the cache and tokens computed now; repeatable.",
        ),
    ] = None,
    weights: Annotated[
        str | None, typer.Option("--weights", help="Format of the weights: bf16, fp8, fp4. Default: the model's.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Show the terms of one step: bytes, FLOPs, milliseconds, and which of them make up its time."""
    from simqueue.datafiles.library import validated
    from simqueue.hardware import load_gpu, load_model
    from simqueue.hardware.precision import known_format
    from simqueue.steptime import RooflineSettings
    from simqueue.steptime.validity import as_columns

    settings = validated(RooflineSettings, {"preset": preset}, "--preset")
    chosen = load_model(model, Path()).with_precision(weights=known_format(weights))
    accelerator = load_gpu(gpu, Path())
    step_time = settings.build(chosen, accelerator, tensor_parallel)
    batch = _batch(decode, context, prefill or [])
    seconds, terms = step_time.seconds(batch), step_time.explain(batch)
    warnings = [*_memory_warnings(accelerator, chosen, tensor_parallel, batch), *step_time.warnings(as_columns(batch))]
    if json_:
        _print_json(seconds, terms, warnings)
        return
    for line in warnings:
        typer.echo(f"warning: {line}")
    gpus = f"{tensor_parallel} x {gpu}" if tensor_parallel > 1 else gpu
    typer.echo(f"{chosen.name} on {gpus}, preset {preset}: {_said(batch)}")
    console().print(_table(terms))
    typer.echo(f"step: {1e3 * seconds:.3f} ms (terms marked * add up to it; the others run beside them)")


def _batch(decode: int, context: int, prefill: list[str]) -> Batch:
    from simqueue.steptime import Batch

    pieces = tuple(_piece(text) for text in prefill)
    if not decode and not pieces:
        raise InputError("explain: nothing runs; give --decode, --prefill, or both")
    return Batch(decode, decode, decode * context, pieces, decode + len(pieces))


def _memory_warnings(gpu: Gpu, model: Model, tensor_parallel: int, batch: Batch) -> Iterator[str]:
    """Yield a line where weights, or weights and the batch's keys and values, exceed all of the GPU's memory."""
    from simqueue.hardware import kv_pool_blocks

    if gpu.memory_bytes is None:
        return
    try:
        room_tokens = kv_pool_blocks(gpu, model, tensor_parallel, memory_share=1.0, block_size=1)
    except InputError as error:
        yield f"such a step cannot run: {error}"
        return
    held_tokens = batch.context_tokens + sum(past + new for past, new in batch.prefill)
    # A layer with a window keeps less than the whole context, so the count says nothing there.
    if held_tokens > room_tokens and not model.window_layers:
        yield (
            f"such a step cannot run: keys and values of {held_tokens:,} tokens, "
            f"and beside the weights of {model.name} there is room for {room_tokens:,} on {gpu.name}"
            + (f" x {tensor_parallel}" if tensor_parallel > 1 else "")
        )


def _piece(text: str) -> tuple[int, int]:
    past, _, new = text.rpartition(":")
    if not new.isdecimal() or not (past or "0").isdecimal() or int(new) < 1:
        raise InputError(f"--prefill: '{text}' must be NEW or PAST:NEW in whole tokens, NEW at least 1")
    return int(past or 0), int(new)


def _said(batch: Batch) -> str:
    parts = []
    if batch.decode_seqs:
        parts.append(f"{batch.decode_seqs} decodes at {batch.context_tokens // batch.decode_seqs} tokens")
    parts += [f"{new} prompt tokens" + (f" behind {past}" if past else "") for past, new in batch.prefill]
    return ", ".join(parts)


def _table(terms: list[Term]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("term", no_wrap=True)
    for title in ("GB", "GFLOP", "ms"):
        table.add_column(title, justify="right")
    table.add_column("counts")
    table.add_column("bound")
    for term in terms:
        moved = "-" if term.bytes_moved is None else f"{term.bytes_moved / 1e9:,.3f}"
        flops = "-" if term.flops is None else f"{term.flops / 1e9:,.1f}"
        table.add_row(term.name, moved, flops, f"{1e3 * term.seconds:.3f}", "*" if term.counts else "", term.bound)
    return table


def _print_json(seconds: float, terms: list[Term], warnings: list[str]) -> None:
    import json

    rows = [
        {
            "term": term.name,
            "ms": 1e3 * term.seconds,
            "bytes": term.bytes_moved,
            "flops": term.flops,
            "counts": term.counts,
            "bound": term.bound,
        }
        for term in terms
    ]
    typer.echo(json.dumps({"step_ms": 1e3 * seconds, "terms": rows, "warnings": warnings}))
