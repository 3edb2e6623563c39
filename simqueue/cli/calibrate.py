"""``simqueue calibrate``: from measured steps, or from served results, to a preset."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simqueue.cli.common import Debug, console
from simqueue.errors import InputError

if TYPE_CHECKING:
    from simqueue.calibration import Case, ErrorRow, Fit
    from simqueue.calibration.linear import StepMean
    from simqueue.calibration.rows import Target
    from simqueue.calibration.served_rows import Server
    from simqueue.steptime.linear import LinearStepTime


class Kind(StrEnum):
    """What the table holds."""

    STEPS = "steps"
    LINEAR = "linear"
    SERVED = "served"
    REQUESTS = "requests"


def calibrate(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV of measurements; columns as --kind says.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Preset to write, FILE.yaml.")],
    model: Annotated[
        str | None, typer.Option("--model", help="A name from `simqueue list models`, or a config.json.")
    ] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="A name from `simqueue list gpus`, or a YAML file.")] = None,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="steps: ms, decode_seqs, context_tokens (mean of a decode), prefill_seqs, prefill_tokens (sum), "
            "past_tokens. linear: the same, for a linear step_time; no model, no GPU. served: concurrency, isl, osl, "
            "tpot_ms, ttft_ms of closed loops. requests: arrival_s, "
            "prompt_tokens, output_tokens, tpot_ms of one run.",
        ),
    ] = Kind.STEPS,
    tensor_parallel: Annotated[
        int, typer.Option("--tensor-parallel", min=1, help="GPUs that shared the model; a column of that name wins.")
    ] = 1,
    weights: Annotated[
        str | None, typer.Option("--weights", help="Format of the weights: bf16, fp8, fp4. Default: the model's.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="PRESET", help="Values that are not fitted come from this preset."),
    ] = None,
    free: Annotated[
        str | None,
        typer.Option(
            "--free",
            metavar="NAMES",
            help="Values to fit, with commas. Default: all that the rows can tell for steps; mfu, seq_us and step_ms "
            "for served results.",
        ),
    ] = None,
    drop_bad_rows: Annotated[
        bool, typer.Option("--drop-bad-rows", help="Leave bad rows out, naming each; without it they end the command.")
    ] = False,
    max_num_seqs: Annotated[int, typer.Option("--max-num-seqs", min=1, help="Seats (requests).")] = 256,
    max_num_batched_tokens: Annotated[
        int, typer.Option("--max-num-batched-tokens", min=1, help="Token budget of a step (served, requests).")
    ] = 8192,
    blocks: Annotated[
        int | None, typer.Option("--blocks", min=1, help="KV pool in blocks of 16 tokens. Default: from memory.")
    ] = None,
    shortest: Annotated[
        float,
        typer.Option(
            "--shortest",
            min=0.01,
            max=1.0,
            help="Lengths were drawn evenly from this share of isl and osl up (served).",
        ),
    ] = 1.0,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Fit a step-time preset to measurements, say what they do not decide, and print the errors by phase."""
    from simqueue.calibration.rows import Target
    from simqueue.calibration.served_rows import Server
    from simqueue.hardware import load_gpu, load_model
    from simqueue.hardware.precision import known_format

    if out.suffix not in {".yaml", ".yml"}:
        raise InputError(f"--out: {out} must end in .yaml, which is how a scenario knows a preset file")
    if kind is Kind.LINEAR:
        _linear(table, out)
        return
    if model is None or gpu is None:
        raise InputError(f"calibrate: --kind {kind.value} needs --model and --gpu")
    chosen = load_model(model, Path()).with_precision(weights=known_format(weights))
    target = Target(chosen, load_gpu(gpu, Path()), tensor_parallel)
    server = Server(
        max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens, blocks=blocks, shortest=shortest
    )
    found, cases = _fitted(kind, table, target, server, base, free, drop_bad_rows=drop_bad_rows)
    errors = _errors(cases, found)
    out.write_text(_text(found, cases, errors, table, target, kind, base), encoding="utf-8")
    _show(found, errors, out)


def _linear(table: Path, out: Path) -> None:
    """Fit a linear step time and write it as the `step_time` of a scenario."""
    from simqueue.calibration.linear import fit_linear, read_step_means

    rows = read_step_means(table)
    found = fit_linear(rows)
    names = ("overhead_s", "per_prefill_token_s", "decode_base_s", "per_decode_s")
    lines = ["step_time:", "  kind: linear", *(f"  {name}: {getattr(found, name):.6g}" for name in names)]
    worst = max(abs(_linear_s(found, row) / row.mean_s - 1) for row in rows)
    mean = sum(abs(_linear_s(found, row) / row.mean_s - 1) for row in rows) / len(rows)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    typer.echo("\n".join(lines))
    typer.echo(f"{len(rows)} rows: mean abs error {100 * mean:.1f} %, worst {100 * worst:.1f} %")
    typer.echo(f"written: {out}")


def _linear_s(cost: LinearStepTime, row: StepMean) -> float:
    values = (cost.overhead_s, cost.per_prefill_token_s, cost.decode_base_s, cost.per_decode_s)
    return sum(value * term for value, term in zip(values, row.terms(), strict=True))


def _fitted(
    kind: Kind,
    table: Path,
    target: Target,
    server: Server,
    base: str | None,
    free: str | None,
    *,
    drop_bad_rows: bool,
) -> tuple[Fit, Sequence[Case]]:
    from simqueue.calibration import fit
    from simqueue.calibration.choice import free_for, held_fixed, start_from
    from simqueue.calibration.request_log import fit_log
    from simqueue.calibration.rows import read_steps
    from simqueue.calibration.served_rows import read_log, read_means

    cases: Sequence[Case]
    names = None if free is None else [name.strip() for name in free.split(",")]
    if kind is Kind.REQUESTS:
        log, bad = read_log(table)
        _judge(bad, len(log), drop=drop_bad_rows)
        wanted = free_for([], names)
        return fit_log(log, wanted, held_fixed(base, wanted), target, server)
    if kind is Kind.SERVED:
        cases, _, bad = read_means(table, target, server)
    else:
        cases, bad = read_steps(table, target)
    _judge(bad, len(cases), drop=drop_bad_rows)
    wanted = free_for(cases, names)
    return fit(cases, wanted, held_fixed(base, wanted), start_from(base)), cases


def _judge(bad: Sequence[str], good: int, *, drop: bool) -> None:
    """Name bad rows; they end the command unless they are to be left out."""
    if bad and not drop:
        raise InputError("\n".join([*bad, f"{len(bad)} bad rows of {len(bad) + good}; --drop-bad-rows skips them"]))
    for line in bad:
        typer.echo(f"left out: {line}")


def _errors(cases: Sequence[Case], found: Fit) -> list[ErrorRow]:
    from simqueue.calibration import error_rows, predict
    from simqueue.calibration.card import rounded

    predicted_s = predict(cases, rounded(found))
    rows = error_rows(cases, predicted_s, lambda case: case.phase)
    return rows if len(rows) == 1 else [*error_rows(cases, predicted_s, lambda _: "all"), *rows]


def _text(
    found: Fit,
    cases: Sequence[Case],
    errors: Sequence[ErrorRow],
    table: Path,
    target: Target,
    kind: Kind,
    base: str | None,
) -> str:
    from simqueue.calibration.card import Provenance, preset_text, valid_range
    from simqueue.calibration.choice import given_by

    origin = Provenance(
        description=f"Fitted to {table.name}: {target.model.name} on {target.gpu.name}",
        gpu=target.gpu.name,
        engine="as measured",
        fitted_on=f"{table.name}, {kind.value}, {len(cases)} measurements",
        given=given_by(base, found),
    )
    return preset_text(found, origin, errors, valid_range(cases))


def _show(found: Fit, errors: Sequence[ErrorRow], out: Path) -> None:
    from rich import box
    from rich.table import Table

    from simqueue.calibration.card import rounded

    stated = rounded(found)
    values = Table("value", "fitted", "standard error", "identified", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in found.free:
        spread = found.standard_errors[name]
        loose = found.not_identified.get(name)
        said = "-" if spread == float("inf") else f"{spread:.2g}"
        values.add_row(name, f"{getattr(stated, name):.4g}", said, "yes" if loose is None else f"no: {loose}")
    console().print(values)
    table: Any = Table(
        "phase", "rows", "mean abs error", "median", "bias", "worst", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for row in errors:
        table.add_row(
            row.group,
            str(row.rows),
            *(f"{value:.1f} %" for value in (row.mape, row.median)),
            f"{row.bias:+.1f} %",
            f"{row.worst:.1f} %",
        )
    console().print(table)
    doubted = _warned(found, errors[0])
    typer.echo(f"written: {out}")
    how = "to use it in spite of the warnings" if doubted else "use it with"
    typer.echo(f"{how}: step_time: {{kind: roofline, preset: {out}}}")


def _warned(found: Fit, all_errors: ErrorRow) -> bool:
    """Print what speaks against using the fit, and say whether anything does."""
    from simqueue.calibration.choice import doubts

    lines = list(doubts(found, all_errors))
    for line in lines:
        typer.echo(f"warning: {line}")
    return bool(lines)
