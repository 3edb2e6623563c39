"""Reads a table of measured steps, and lists the rows that cannot be measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simqueue.calibration.case import StepCase
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model
from simqueue.steptime import Batch
from simqueue.steptime.roofline import RooflineStepTime

NEEDED = ("ms",)
_COUNTS = ("decode_seqs", "prefill_tokens", "prefill_seqs", "past_tokens", "sampled_rows")
KNOWN = ("ms", "context_tokens", *_COUNTS, "tensor_parallel")
"""`context_tokens` is the mean per decode, `prefill_tokens` the sum over prompts, `past_tokens` per prompt."""


@dataclass(frozen=True, slots=True)
class Target:
    """The measured deployment.

    Attributes
    ----------
    model, gpu : Model, Gpu
        Model and GPU.
    tensor_parallel : int
        Number of GPUs, for rows without a value of their own.
    memory_share : float
        Share of the GPU's memory for weights and KV.
    """

    model: Model
    gpu: Gpu
    tensor_parallel: int = 1
    memory_share: float = 1.0


def read_steps(file: Path, target: Target) -> tuple[list[StepCase], list[str]]:
    """Read measured steps.

    Parameters
    ----------
    file : Path
        A CSV table with ``ms`` and what each step ran; see `KNOWN`. Missing columns and empty cells are 0, except:
        ``prefill_seqs`` is 1 if there are prompt tokens, ``sampled_rows`` is decodes plus prompts.
    target : Target
        Model and GPU that were measured.

    Returns
    -------
    cases : list of StepCase
        The usable rows.
    bad : list of str
        One line for each row that cannot be used, with file, line and reason.

    Raises
    ------
    InputError
        If the file cannot be read, or has other columns.
    """
    good: list[StepCase] = []
    bad: list[str] = []
    table = read_table(file, file.name, pad=True)
    table.check_columns(NEEDED, KNOWN)
    for row in table.rows():
        try:
            good.append(_case(row, target))
        except InputError as error:
            bad.append(str(error))
    return good, bad


def _case(row: Row, target: Target) -> StepCase:
    """Return a row as a case; InputError if it cannot be a measurement."""
    ms, batch = row.number("ms", above=0), _batch(row)
    tensor_parallel = row.integer("tensor_parallel", empty=0) or target.tensor_parallel
    if tensor_parallel not in target.model.tensor_parallel_sizes():
        raise row.error(f"the heads of {target.model.name} cannot be divided by tensor_parallel = {tensor_parallel}")
    case = StepCase(row.where, target.model, target.gpu, tensor_parallel, batch, ms / 1e3)
    problem = _impossible(case, target)
    if problem is not None:
        raise row.error(problem)
    return case


def _batch(row: Row) -> Batch:
    """Return what a step ran, with its prompt tokens divided evenly among its prompts."""
    context = row.number("context_tokens", least=0, empty=0)
    decodes, new_tokens, prompts, past, sampled = (row.integer(name, empty=0) for name in _COUNTS)
    if not decodes and not new_tokens:
        raise row.error("the step is empty: neither decode_seqs nor prefill_tokens")
    if new_tokens < prompts:
        raise row.error(f"{new_tokens} prompt tokens are fewer than {prompts} prompts")
    if decodes and context < 1:
        raise row.error("decodes need context_tokens of at least 1")
    pieces = prompts or min(new_tokens, 1)
    prefill = tuple((past, new_tokens // pieces + (i < new_tokens % pieces)) for i in range(pieces))
    return Batch(decodes, decodes, round(decodes * context), prefill, sampled or decodes + pieces)


def _impossible(case: StepCase, target: Target) -> str | None:
    """Return why a row is physically impossible (faster than the peaks, or more KV than memory), or None."""
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
