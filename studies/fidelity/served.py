"""Measured means of served closed-loop runs, as cases of the calibration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.calibration import ServedCase
from simqueue.calibration.closed_loop import ClosedLoop, compose
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.hardware import Gpu, Model, kv_pool_blocks, load_gpu, load_model

SERVED_FILE: Final = "served_ttft_tpot_hopper.csv"
MODELS: Final = {
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1": "deepseek-v3",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
}
"""Names of the data -> names of the library; R1 has the geometry of V3."""

GPUS: Final = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm"}
SCHEDULERS: Final = {"vllm": "chunked", "trtllm": "continuous", "sglang": "continuous"}
BLOCK_SIZE: Final = 16
MEMORY_SHARE: Final = 0.9
BUDGET: Final = 8192
"""Token budget of the servers, where nothing better is known."""
REQUESTS_PER_CLIENT: Final = 10
DRAWN_LENGTHS: Final = re.compile(r"(^|/)\d{4}-\d{2}-\d{2}")
"""Origins with a date are InferenceMAX runs; their lengths are drawn from 0.8 to 1.0 of the nominal ones."""
SEED: Final = 0


@dataclass(frozen=True, slots=True)
class ServedRow:
    """One served run, with its measured mean TPOT and TTFT.

    Attributes
    ----------
    engine, gpu, model, precision : str
    tensor_parallel : int
    isl, osl : int
        Nominal input and output lengths, in tokens.
    concurrency : int
        Clients of the closed loop.
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


def served_rows(
    folder: Path, engine: str, model: str, precision: str, gpu: str, budget: int = BUDGET
) -> list[ServedRow]:
    """Return the served runs of one engine, model, precision and GPU, if one server did both prefill and decode.

    `budget` is the server's token budget per step.
    """
    file = folder / SERVED_FILE
    gpus = {name: load_gpu(name, Path()) for name in GPUS.values()}
    base = load_model(model, Path())
    stored = base.with_precision(weights="fp8") if precision == "fp8" else base
    return [
        _row(row, stored, gpus[GPUS[row["system"]]], budget)
        for row in read_table(file, file.name).rows()
        if selected(row, engine, model, precision, gpu)
    ]


def selected(row: Row, engine: str, model: str, precision: str, gpu: str) -> bool:
    """Return whether a row is of this engine, model, precision and GPU, and of one server for prefill and decode."""
    wanted = (
        row["backend"] == engine
        and MODELS.get(row["model_path"]) == model
        and (row["precision"] or "bf16") == precision
        and GPUS[row["system"]] == gpu
    )
    return wanted and row["mode"] == "agg" and row.number("pp_size", empty=1) == 1 and doubt(row) is None


def doubt(row: Row) -> str | None:
    """Return why a row is not used though its kind is: the collection doubts it, or has it twice; else None."""
    if row["suspect"] == "1":
        return f"doubted by the collection: {row['suspect_reason']}"
    if row["same_run_as"] != "none":
        return "the same run as another row"
    if row.number("attention_dp_size", empty=1) > 1:
        return "attention data parallel: each GPU has requests of its own, which is not simulated"
    if row.number("moe_tp_size", empty=1) > 1 and row.number("moe_ep_size", empty=1) > 1:
        return "experts divided over the GPUs in both ways at once, which is not simulated"
    clients, seats = (row.number(name, empty=0) for name in ("silicon_concurrency", "batch_size"))
    return "clients per server not stated" if clients and seats and clients != seats else None


def _row(row: Row, model: Model, gpu: Gpu, budget: int) -> ServedRow:
    tensor_parallel, isl, osl = row.integer("tp_size"), row.integer("isl"), row.integer("osl")
    concurrency = row.integer("silicon_concurrency" if row["silicon_concurrency"] else "batch_size")
    drawn = DRAWN_LENGTHS.search(row["origin"]) is not None
    loop = _loop(row["backend"], model, gpu, tensor_parallel, (isl, osl, concurrency), budget, drawn=drawn)
    composition = compose(loop)
    parts = (row.where, model, gpu, tensor_parallel, composition.batches)
    whole = row.number("moe_ep_size", empty=1) > 1
    return ServedRow(
        engine=row["backend"],
        gpu=gpu.name,
        model=model.name,
        precision=row["precision"] or "bf16",
        tensor_parallel=tensor_parallel,
        isl=isl,
        osl=osl,
        concurrency=concurrency,
        tpot=ServedCase(
            *(*parts, composition.tpot_weights.tolist(), row.number("silicon_tpot_ms") / 1e3), expert_parallel=whole
        ),
        ttft=ServedCase(
            *(*parts, composition.ttft_weights.tolist(), row.number("silicon_ttft_ms") / 1e3),
            expert_parallel=whole,
            prompt_tokens=composition.mean_prompt_tokens,
        ),
    )


def _loop(
    engine: str, model: Model, gpu: Gpu, tensor_parallel: int, shape: tuple[int, int, int], budget: int, *, drawn: bool
) -> ClosedLoop:
    isl, osl, concurrency = shape
    prompts, outputs = _lengths(isl, osl, REQUESTS_PER_CLIENT * concurrency, drawn=drawn)
    return ClosedLoop(
        prompts,
        outputs,
        concurrency,
        blocks=kv_pool_blocks(gpu, model, tensor_parallel, MEMORY_SHARE, BLOCK_SIZE),
        block_size=BLOCK_SIZE,
        max_num_batched_tokens=budget,
        scheduler=SCHEDULERS[engine],
        separate=engine == "sglang",
    )


def _lengths(isl: int, osl: int, n: int, *, drawn: bool) -> tuple[list[int], list[int]]:
    if not drawn:
        return [isl] * n, [osl] * n
    generator = np.random.default_rng(SEED)
    lengths = [generator.integers(round(0.8 * nominal), nominal, n, endpoint=True).tolist() for nominal in (isl, osl)]
    return lengths[0], lengths[1]
