"""``simqueue calibrate``: fit a preset to measured steps or to served results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from simqueue.calibration import Case, ErrorRow, Fit, error_rows, fit, predict
from simqueue.calibration.card import Provenance, preset_text, rounded, rounded_front_end, stated, valid_range
from simqueue.calibration.choice import doubts, free_for, given_by, held_fixed, start_from
from simqueue.calibration.linear import StepMean, fit_linear, read_step_means
from simqueue.calibration.request_log import fit_log
from simqueue.calibration.rows import Target, read_steps
from simqueue.calibration.served_rows import BUDGET, Server, read_log, read_means
from simqueue.cli.actions.common import load_hardware, print_warnings, say
from simqueue.cli.actions.screen import busy, print_rows
from simqueue.cli.options import Kind
from simqueue.errors import InputError, Problem
from simqueue.outputs import Place, reserved_file
from simqueue.steptime.linear import LinearStepTime
from simqueue.steptime.preset import load_preset

_LINEAR_VALUES = ("overhead_s", "per_prefill_token_s", "decode_base_s", "per_decode_s")


@dataclass(frozen=True, slots=True)
class _Job:
    """What to fit, and to which measurements.

    Attributes
    ----------
    file : Path
        The table of measurements.
    kind : Kind
    target : Target
    server : Server
        Settings of the server that was measured; only for served results.
    base : str or None
        Preset that gives the values that are not fitted.
    free : list of str or None
        Values to fit; None: by kind.
    drop_bad_rows : bool
    """

    file: Path
    kind: Kind
    target: Target
    server: Server
    base: str | None
    free: list[str] | None
    drop_bad_rows: bool


def calibrate(
    table: Path,
    out: Path,
    model: str | None,
    gpu: str | None,
    kind: Kind,
    tensor_parallel: int,
    weights: str | None,
    base: str | None,
    free: str | None,
    drop_bad_rows: bool,
    max_num_seqs: int,
    max_num_batched_tokens: int | None,
    blocks: int | None,
    shortest: float,
    quiet: bool,
) -> None:
    """Fit a preset, write it, and print its values, its errors and what speaks against using it."""
    if out.suffix not in {".yaml", ".yml"}:
        raise InputError(f"--out: {out} must end in .yaml, so that scenarios can name it as a preset")
    if kind is Kind.LINEAR:
        with reserved_file(out) as place:
            _linear(table, place)
        return
    if model is None or gpu is None:
        raise InputError(f"calibrate: --kind {kind.value} needs --model and --gpu")
    target = Target(*load_hardware(model, gpu, weights), tensor_parallel)
    known = None if base is None else load_preset(base, Path()).card.server
    budget = max_num_batched_tokens or (known and known.max_num_batched_tokens) or BUDGET
    server = Server(max_num_seqs=max_num_seqs, max_num_batched_tokens=budget, blocks=blocks, shortest=shortest)
    names = None if free is None else [name.strip() for name in free.split(",")]
    with reserved_file(out) as place:
        _calibrate(_Job(table, kind, target, server, base, names, drop_bad_rows), place, quiet=quiet)


def _linear(file: Path, place: Place) -> None:
    """Fit a linear step time and write it as the `step_time` of a scenario."""
    rows = read_step_means(file)
    found = fit_linear(rows)
    lines = ["step_time:", "  kind: linear", *(f"  {name}: {getattr(found, name):.6g}" for name in _LINEAR_VALUES)]
    errors = [abs(_linear_s(found, row) / row.mean_s - 1) for row in rows]
    place.write_text("\n".join(lines) + "\n")
    typer.echo("\n".join(lines))
    mean = sum(errors) / len(errors)
    typer.echo(f"{len(rows)} rows: mean abs error {100 * mean:.1f} %, worst {100 * max(errors):.1f} %")
    typer.echo(f"written: {place.path}")


def _linear_s(cost: LinearStepTime, row: StepMean) -> float:
    values: list[float] = [getattr(cost, name) for name in _LINEAR_VALUES]
    return sum(value * term for value, term in zip(values, row.terms(), strict=True))


def _calibrate(job: _Job, place: Place, *, quiet: bool) -> None:
    with busy(f"fitting to {job.file.name}", quiet=quiet):
        found, cases = _fitted(job)
    errors = _errors(cases, found)
    origin = Provenance(
        description=f"Fitted to {job.file.name}: {job.target.model.name} on {job.target.gpu.name}",
        gpu=job.target.gpu.name,
        engine="as measured",
        fitted_on=f"{job.file.name}, {job.kind.value}, {len(cases)} measurements",
        given=given_by(job.base, found),
        server={} if job.kind is Kind.STEPS else _described(job),
    )
    place.write_text(preset_text(found, origin, errors, valid_range(cases)))
    _show_values(found)
    _show_errors(errors)
    warnings = list(doubts(found, errors[0], job.base))
    print_warnings(warnings)
    typer.echo(f"written: {place.path}")
    how = "to use it in spite of the warnings" if warnings else "to use it"
    typer.echo(f"{how}: step_time: {{kind: roofline, preset: {place.path}}}")


def _described(job: _Job) -> dict[str, int | float]:
    """Return what the preset says of the measured server; a closed loop has as many running requests as clients."""
    server = job.server
    seats = {"max_num_seqs": server.max_num_seqs} if job.kind is Kind.REQUESTS else {}
    share = {} if server.blocks is not None else {"gpu_memory_utilization": server.memory_share}
    return {"max_num_batched_tokens": server.max_num_batched_tokens, **seats, **share}


def _fitted(job: _Job) -> tuple[Fit, Sequence[Case]]:
    """Read the measurements and fit the free values."""
    if job.kind is Kind.REQUESTS:
        log, bad = read_log(job.file)
        _judge(bad, len(log), drop=job.drop_bad_rows)
        wanted = free_for([], job.free)
        return fit_log(log, wanted, held_fixed(job.base, wanted), job.target, job.server)
    cases: Sequence[Case]
    if job.kind is Kind.SERVED:
        tpot, ttft, bad = read_means(job.file, job.target, job.server)
        cases = [*tpot, *ttft]
    else:
        cases, bad = read_steps(job.file, job.target)
    _judge(bad, len(cases), drop=job.drop_bad_rows)
    wanted = free_for(cases, job.free)
    return fit(cases, wanted, held_fixed(job.base, wanted), start_from(job.base)), cases


def _judge(bad: Sequence[str], good: int, *, drop: bool) -> None:
    """Print the bad rows if they are to be left out; otherwise raise InputError if there are any."""
    if bad and not drop:
        is_are, them = ("is", "it") if len(bad) == 1 else ("are", "them")
        count = f"{len(bad):,} of {len(bad) + good:,} rows {is_are} bad; --drop-bad-rows leaves {them} out"
        raise InputError.of(Problem((), line) for line in [count, *bad])
    for line in bad:
        say(f"left out: {line}")


def _errors(cases: Sequence[Case], found: Fit) -> list[ErrorRow]:
    """Return the errors over all measurements, then by phase if there is more than one."""
    predicted_s = predict(cases, rounded(found), rounded_front_end(found))
    rows = error_rows(cases, predicted_s, lambda case: case.phase)
    return rows if len(rows) == 1 else [*error_rows(cases, predicted_s, lambda _: "all"), *rows]


def _show_values(found: Fit) -> None:
    rows = []
    for name, value in stated(found).items():
        spread = found.standard_errors[name]
        standard_error = "-" if spread == float("inf") else f"{spread:.2g}"
        why_not = found.not_identified.get(name)
        identified = "yes" if why_not is None else f"no: {why_not}"
        rows.append((name, f"{value:.4g}", standard_error, identified))
    print_rows(("value", "fitted", "standard error", "identified"), rows, left=("value",), wrapped=("identified",))


def _show_errors(errors: Sequence[ErrorRow]) -> None:
    rows = []
    for row in errors:
        percent = (f"{row.mape:.1f} %", f"{row.median:.1f} %", f"{row.bias:+.1f} %", f"{row.worst:.1f} %")
        rows.append((row.group, f"{row.rows:,}", *percent))
    print_rows(("phase", "rows", "mean abs error", "median", "bias", "worst"), rows, left=("phase",))
