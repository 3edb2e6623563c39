"""Measured means of served closed-loop runs as cases."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.calibration import ServedCase
from simqueue.calibration.closed_loop import ClosedLoop, compose
from simqueue.hardware import Gpu, Model, kv_pool_blocks, load_gpu, load_model

MODELS: Final = {
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
}
"""Of the data's names: the dense models, which the step-time data covers too."""

GPUS: Final = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm"}
SCHEDULERS: Final = {"vllm": "chunked", "trtllm": "continuous", "sglang": "continuous"}
BLOCK_SIZE: Final = 16
MEMORY_SHARE: Final = 0.9
REQUESTS_PER_CLIENT: Final = 10
DRAWN_LENGTHS: Final = "2026-"
"""Origins dated so are InferenceMAX runs, whose lengths are drawn from 0.8 to 1.0 of the nominal ones."""
SEED: Final = 0


@dataclass(frozen=True, slots=True)
class ServedRow:
    """One served run: what was asked, what was measured, and its two means as cases.

    Attributes
    ----------
    engine, gpu, model, precision : str
    tensor_parallel, isl, osl, concurrency : int
        Nominal lengths.
    tpot, ttft : ServedCase
    """

    engine: str
    gpu: str
    model: str
    precision: str
    tensor_parallel: int
    isl: int
    osl: int
    concurrency: int
    tpot: ServedCase
    ttft: ServedCase


def served_rows(folder: Path, engine: str, model: str, precision: str, gpu: str | None = None) -> list[ServedRow]:
    """Return the served runs of one engine, model and precision (and GPU) that are one unsplit server each."""
    file = folder / "served_ttft_tpot_hopper.csv"
    gpus = {name: load_gpu(name, Path()) for name in GPUS.values()}
    base = load_model(model, Path())
    stored = base.with_precision(weights="fp8") if precision == "fp8" else base
    rows = []
    with file.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), start=2):
            if selected(row, engine, model, precision, gpu):
                rows.append(_row(row, f"{file.name}, line {number}", stored, gpus[GPUS[row["system"]]]))
    return rows


def selected(row: Mapping[str, str], engine: str, model: str, precision: str, gpu: str | None) -> bool:
    """Say whether a row is of this engine, model and precision (and GPU), and of one unsplit server."""
    wanted = (
        row["backend"] == engine
        and MODELS.get(row["model_path"]) == model
        and (row["precision"] or "bf16") == precision
        and (gpu is None or GPUS[row["system"]] == gpu)
    )
    return wanted and row["mode"] == "agg" and float(row["pp_size"] or 1) == 1


def _row(row: dict[str, str], where: str, model: Model, gpu: Gpu) -> ServedRow:
    tensor_parallel, isl, osl = int(float(row["tp_size"])), int(float(row["isl"])), int(float(row["osl"]))
    concurrency = int(float(row["silicon_concurrency"] or row["batch_size"]))
    drawn = row["origin"].startswith(DRAWN_LENGTHS)
    loop = _loop(row["backend"], model, gpu, tensor_parallel, (isl, osl, concurrency), drawn=drawn)
    composition = compose(loop)
    parts = (where, model, gpu, tensor_parallel, composition.batches)
    return ServedRow(
        engine=row["backend"],
        gpu=gpu.name,
        model=model.name,
        precision=row["precision"] or "bf16",
        tensor_parallel=tensor_parallel,
        isl=isl,
        osl=osl,
        concurrency=concurrency,
        tpot=ServedCase(*parts, composition.tpot_weights.tolist(), float(row["silicon_tpot_ms"]) / 1e3),
        ttft=ServedCase(*parts, composition.ttft_weights.tolist(), float(row["silicon_ttft_ms"]) / 1e3),
    )


def _loop(
    engine: str, model: Model, gpu: Gpu, tensor_parallel: int, shape: tuple[int, int, int], *, drawn: bool
) -> ClosedLoop:
    isl, osl, concurrency = shape
    prompts, outputs = _lengths(isl, osl, REQUESTS_PER_CLIENT * concurrency, drawn=drawn)
    return ClosedLoop(
        prompts,
        outputs,
        concurrency,
        blocks=kv_pool_blocks(gpu, model, tensor_parallel, MEMORY_SHARE, BLOCK_SIZE),
        block_size=BLOCK_SIZE,
        scheduler=SCHEDULERS[engine],
        separate=engine == "sglang",
    )


def _lengths(isl: int, osl: int, n: int, *, drawn: bool) -> tuple[list[int], list[int]]:
    if not drawn:
        return [isl] * n, [osl] * n
    generator = np.random.default_rng(SEED)
    lengths = [generator.integers(round(0.8 * nominal), nominal, n, endpoint=True).tolist() for nominal in (isl, osl)]
    return lengths[0], lengths[1]
