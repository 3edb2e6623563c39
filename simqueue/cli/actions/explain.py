"""``simqueue explain``: what the time of one step is made of, the fleets of a scenario, or the way of a request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import typer

from simqueue.cli.actions.common import flag, load_hardware, print_warnings, say
from simqueue.cli.actions.explain_fleet import explain_fleet
from simqueue.cli.actions.explain_route import explain_one_route
from simqueue.cli.actions.screen import print_rows
from simqueue.datafiles.library import validated
from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model, kv_pool_blocks
from simqueue.steptime import Batch, RooflineSettings, Term
from simqueue.steptime.build import build_roofline
from simqueue.steptime.preset import load_preset
from simqueue.steptime.validity import as_columns


def explain(
    scenario: str | None,
    model: str | None,
    gpu: str | None,
    preset: str,
    tensor_parallel: int,
    expert_parallel: bool,
    decode: int,
    context: int,
    prefill: list[str] | None,
    weights: str | None,
    route: str | None,
    policy: str | None,
    set_: list[str] | None,
    json_: bool,
) -> None:
    """Print the terms of the step, the fleets, or the way of a request, as tables or as JSON."""
    if scenario is not None:
        if model or gpu or weights or prefill or decode:
            raise InputError("explain: give a scenario for its fleets, or --model and --gpu for a step; not both")
        if route is not None:
            explain_one_route(scenario, set_, route, policy, as_json=json_)
        elif policy is not None:
            raise InputError(f"--policy {policy}: is for --route REQUEST_ID, and without it all policies are shown")
        else:
            explain_fleet(scenario, set_, as_json=json_)
        return
    if route is not None or policy is not None:
        raise InputError("--route, --policy: give a scenario, and the request whose way is shown")
    if model is None or gpu is None or set_:
        raise InputError("explain: give --model and --gpu for a step, or a scenario for its fleets")
    with flag("--preset"):
        load_preset(preset)
    settings = validated(RooflineSettings, {"preset": preset, "expert_parallel": expert_parallel}, "--preset")
    chosen, accelerator = load_hardware(model, gpu, weights)
    with flag("--tensor-parallel"):
        chosen.check_tensor_parallel(tensor_parallel)
    with flag("--expert-parallel"):
        step_time = build_roofline(settings, chosen, accelerator, tensor_parallel)
    batch = _batch(decode, context, prefill or [])
    seconds, terms = step_time.seconds(batch), step_time.explain(batch)
    warnings = [*_memory_warnings(accelerator, chosen, tensor_parallel, batch), *step_time.warnings(as_columns(batch))]
    power_w = _power_w(accelerator, seconds, terms)
    if json_:
        _print_json(seconds, terms, warnings, power_w, tensor_parallel)
        return
    print_warnings(warnings)
    gpus = f"{tensor_parallel} x {gpu}" if tensor_parallel > 1 else gpu
    say(f"{chosen.name} on {gpus}, preset {preset}: {_described(batch)}")
    _show(terms)
    typer.echo(f"step: {1e3 * seconds:.3f} ms, the sum of the terms marked *; the other terms overlap with them")
    if power_w is None:
        typer.echo(f"power: not measured on {accelerator.name}")
    else:
        energy_j = power_w * seconds * tensor_parallel
        typer.echo(f"power: about {power_w:.0f} W per GPU, {energy_j:.3g} J per step on all GPUs")


def _power_w(gpu: Gpu, seconds: float, terms: Sequence[Term]) -> float | None:
    """Return the mean power of a GPU during the step; None if it was not measured."""
    if gpu.power is None:
        return None
    moved = sum(term.bytes_moved or 0.0 for term in terms)
    flops = sum(term.flops or 0.0 for term in terms)
    return gpu.power.watts(seconds, moved, flops)


def _batch(decode: int, context: int, prefill: list[str]) -> Batch:
    chunks = tuple(_chunk(text) for text in prefill)
    if not decode and not chunks:
        raise InputError("explain: the step is empty; give --decode, --prefill, or both")
    return Batch(decode, decode, decode * context, chunks, decode + len(chunks))


def _chunk(text: str) -> tuple[int, int]:
    past, _, new = text.rpartition(":")
    if not new.isdecimal() or not (past or "0").isdecimal() or int(new) < 1:
        raise InputError(f"--prefill: '{text}' must be NEW or PAST:NEW in whole tokens, with NEW at least 1")
    return int(past or 0), int(new)


def _memory_warnings(gpu: Gpu, model: Model, tensor_parallel: int, batch: Batch) -> Iterator[str]:
    """Yield a line if the weights, or the weights and the KV of the batch, exceed the memory of the GPUs."""
    if gpu.memory_bytes is None:
        return
    try:
        room_tokens = kv_pool_blocks(gpu, model, tensor_parallel, memory_share=1.0, block_size=1)
    except InputError as error:
        yield f"this step cannot run: {error}"
        return
    held_tokens = batch.context_tokens + sum(past + new for past, new in batch.prefill)
    # Layers with a sliding window hold less than the whole context, so the comparison does not apply to them.
    if held_tokens > room_tokens and not model.window_layers:
        yield (
            f"this step cannot run: it holds keys and values of {held_tokens:,} tokens, but next to the weights of "
            f"{model.name} there is room for {room_tokens:,} on {gpu.name}"
            + (f" x {tensor_parallel}" if tensor_parallel > 1 else "")
        )


def _described(batch: Batch) -> str:
    parts = []
    if batch.decode_seqs:
        parts.append(f"{batch.decode_seqs} decodes at {batch.context_tokens // batch.decode_seqs} tokens")
    parts += [f"{new} prompt tokens" + (f" after {past}" if past else "") for past, new in batch.prefill]
    return ", ".join(parts)


def _show(terms: Sequence[Term]) -> None:
    rows = []
    for term in terms:
        moved = "-" if term.bytes_moved is None else f"{term.bytes_moved / 1e9:,.3f}"
        flops = "-" if term.flops is None else f"{term.flops / 1e9:,.1f}"
        rows.append((term.name, moved, flops, f"{1e3 * term.seconds:.3f}", "*" if term.counts else "", term.bound))
    print_rows(("term", "GB", "GFLOP", "ms", "counts", "bound"), rows, left=("term",), wrapped=("counts", "bound"))


def _print_json(seconds: float, terms: Sequence[Term], warnings: list[str], power_w: float | None, gpus: int) -> None:
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
    told = {
        "step_ms": 1e3 * seconds,
        "power_w": power_w,
        "energy_j": None if power_w is None else power_w * seconds * gpus,
        "terms": rows,
        "warnings": warnings,
    }
    typer.echo(json.dumps(told))
