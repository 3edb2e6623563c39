"""Measured step times as cases of the calibration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from simqueue.calibration import StepCase
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.hardware import Gpu, Model, load_gpu, load_model
from simqueue.steptime import Batch

GPUS: Final = {
    "A100-80GB-SXM": "a100-80gb",
    "H100-80GB-SXM": "h100-sxm",
    "H200-141GB-SXM": "h200-sxm",
    "RTX4090": "rtx-4090",
    "RTXPRO6000": "rtx-pro-6000",
}
MODELS: Final = {
    "llama3-8b": "llama-3.1-8b",
    "llama3-70b": "llama-3.1-70b",
    "llama2-70b": "llama-2-70b",
    "qwen3-8b": "qwen3-8b",
    "qwen3-32b": "qwen3-32b",
}
"""Names of the data -> names of the library; bloom-176b and llama2-7b are only in rows that are no whole steps."""

STEPS_FILE: Final = "step_times.csv"


def step_cases(folder: Path, sources: tuple[str, ...] = ()) -> list[StepCase]:
    """Return the measured whole steps of some sources, or of all.

    Rows that the collection flags as suspect, rows of models with an unknown geometry, and the rows of ``vidur``, which
    are parts of a step, are not returned.
    """
    gpus = {name: load_gpu(name, Path()) for name in GPUS.values()}
    models = {name: load_model(name, Path()) for name in MODELS.values()}
    return list(_read(folder / STEPS_FILE, sources, gpus, models))


def reason_not_a_case(row: Row) -> str | None:
    """Return why a row of the step times is not a case; None if it is one."""
    if row["source"] == "vidur":
        return "parts of a step"
    if row["model"] not in MODELS:
        return f"{row['model']} ({row['source']}): its MLP of two matrices and ALiBi are not modelled"
    if row["flag"]:
        return f"{row['model']} ({row['source']}), flagged by the collection ({row['flag']})"
    return None


def _read(file: Path, sources: tuple[str, ...], gpus: dict[str, Gpu], models: dict[str, Model]) -> Iterator[StepCase]:
    for row in read_table(file, file.name).rows():
        if sources and row["source"] not in sources:
            continue
        if reason_not_a_case(row) is not None:
            continue
        yield StepCase(
            where=row.where,
            model=models[MODELS[row["model"]]],
            gpu=gpus[GPUS[row["gpu"]]],
            tensor_parallel=row.integer("tp"),
            batch=_batch(row),
            measured_s=row.number("measured_ms") / 1e3,
            group=row["source"],
        )


def _batch(row: Row) -> Batch:
    """Return the batch of a row: decodes at their mean context, equal prompts, or both."""
    seqs = row.number("batch_size")
    if row["phase"] == "decode":
        decodes = max(1, round(seqs))
        return Batch(decodes, decodes, round(decodes * row.number("context_len")), (), decodes)
    new_tokens, past = round(row.number("n_prefill_tokens")), round(row.number("kv_prefill", empty=0))
    if row["phase"] == "mixed":
        decodes = round(row.number("n_decode"))
        context = decodes * round(row.number("kv_decode"))
        return Batch(decodes, decodes, context, ((past, new_tokens),), decodes + 1)
    pieces = round(seqs)
    return Batch(prefill=((past, new_tokens // pieces),) * pieces, sampled_rows=pieces)
