"""Reads a user's table of measured steps, and names the rows that cannot be."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from simqueue.calibration.case import StepCase
from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model
from simqueue.names import unknown
from simqueue.steptime import Batch, RooflineStepTime

NEEDED = ("ms",)
KNOWN = (
    *("ms", "decode_seqs", "context_tokens", "prefill_seqs", "prefill_tokens", "past_tokens"),
    *("sampled_rows", "tensor_parallel"),
)
"""``context_tokens`` is the mean of a decode, ``prefill_tokens`` the sum over prompts, ``past_tokens`` each one's."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be used: where it stands and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Target:
    """What was measured.

    Attributes
    ----------
    model, gpu : Model, Gpu
    tensor_parallel : int
        Where the table has no column of that name.
    memory_share : float
        Share of the GPU's memory that weights and KV may take.
    """

    model: Model
    gpu: Gpu
    tensor_parallel: int = 1
    memory_share: float = 1.0


def read_steps(file: Path, target: Target) -> tuple[list[StepCase], list[BadRow]]:
    """Read measured steps.

    Parameters
    ----------
    file : Path
        A CSV table with ``ms`` and what each step ran; see `KNOWN`. Columns left out are 0, ``prefill_seqs`` 1 where
        there are prompt tokens, ``sampled_rows`` decodes plus prompts.
    target : Target

    Returns
    -------
    usable rows, bad rows

    Raises
    ------
    InputError
        The file cannot be read, or its columns are not these.
    """
    good: list[StepCase] = []
    bad: list[BadRow] = []
    for where, row in read_rows(file, KNOWN, NEEDED):
        case = _case(where, row, target)
        problem = case if isinstance(case, str) else _impossible(case, target)
        if isinstance(case, StepCase) and problem is None:
            good.append(case)
        else:
            bad.append(BadRow(where, str(problem)))
    return good, bad


def read_rows(file: Path, known: Sequence[str], needed: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (place, row) of a CSV table whose columns are among `known` and hold those `needed`."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    reader = csv.DictReader(lines)
    columns = reader.fieldnames or ()
    for column in columns:
        if column not in known:
            raise InputError(f"{file}: {unknown('column', column, known)}")
    missing = [column for column in needed if column not in columns]
    if missing:
        raise InputError(f"{file}: missing column {', '.join(missing)}; known: {', '.join(known)}")
    for number, row in enumerate(reader, start=2):
        yield f"{file.name}, line {number}", {key: value or "" for key, value in row.items() if key is not None}


def number(row: Mapping[str, str], column: str, default: float = 0.0) -> float:
    """Return a value of a row; NaN where it is no number."""
    text = row.get(column, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        return float("nan")


def _case(where: str, row: Mapping[str, str], target: Target) -> StepCase | str:
    """Return the case, or what is wrong with the row."""
    values = {column: number(row, column) for column in KNOWN}
    problem = next(_problems(row, values, target), None)
    if problem is not None:
        return problem
    decodes, new_tokens = int(values["decode_seqs"]), int(values["prefill_tokens"])
    pieces = int(values["prefill_seqs"]) or (1 if new_tokens else 0)
    past, tensor_parallel = int(values["past_tokens"]), int(values["tensor_parallel"]) or target.tensor_parallel
    shares = [new_tokens // pieces + (i < new_tokens % pieces) for i in range(pieces)]
    batch = Batch(
        decodes,
        decodes,
        round(decodes * values["context_tokens"]),
        tuple((past, share) for share in shares),
        int(values["sampled_rows"]) or decodes + pieces,
    )
    return StepCase(where, target.model, target.gpu, tensor_parallel, batch, values["ms"] / 1e3)


def _problems(row: Mapping[str, str], values: Mapping[str, float], target: Target) -> Iterator[str]:
    """Yield what is wrong with the numbers of a row; the first is told."""
    for column, value in values.items():
        if not isfinite(value) or value < 0:
            yield f"{column} = {row.get(column)!r} is not a number of at least 0"
        elif column not in {"ms", "context_tokens"} and value != int(value):
            yield f"{column} = {value:g} is not a whole number"
    if values["ms"] <= 0:
        yield f"ms = {values['ms']:g} is not positive"
    if not values["decode_seqs"] and not values["prefill_tokens"]:
        yield "nothing ran: neither decode_seqs nor prefill_tokens"
    if values["prefill_tokens"] < values["prefill_seqs"]:
        yield f"{values['prefill_tokens']:g} prompt tokens are fewer than {values['prefill_seqs']:g} prompts"
    if values["decode_seqs"] and values["context_tokens"] < 1:
        yield "decodes with a context below 1 token"
    tensor_parallel = values["tensor_parallel"] or target.tensor_parallel
    if tensor_parallel not in target.model.tensor_parallel_sizes():
        yield f"tensor_parallel = {tensor_parallel:g} does not share out the heads of {target.model.name}"


def _impossible(case: StepCase, target: Target) -> str | None:
    """Say why physics forbids a row, if it does: faster than the peaks allow, or more KV than the memory holds."""
    bound = RooflineStepTime.of(case.model, case.gpu, case.tensor_parallel, bandwidth_share=1.0, mfu=1.0)
    measured_ms, least_ms = 1e3 * case.measured_s, 1e3 * bound.seconds(case.batch)
    if measured_ms < least_ms:
        return f"{measured_ms:.4g} ms is faster than the peaks of {case.gpu.name} allow, {least_ms:.4g} ms"
    if case.gpu.memory_bytes is None or case.model.window_layers:
        return None
    tokens = case.batch.context_tokens + sum(past + new for past, new in case.batch.prefill)
    kv_gb = tokens * case.model.kv_bytes_per_token_per_gpu(case.tensor_parallel) / 1e9
    weights_gb = case.model.weight_bytes / case.tensor_parallel / 1e9
    room_gb = max(0.0, target.memory_share * case.gpu.memory_bytes / 1e9 - weights_gb)
    if kv_gb > room_gb:
        return f"{kv_gb:.3g} GB of keys and values do not fit the {room_gb:.3g} GB beside the weights"
    return None
