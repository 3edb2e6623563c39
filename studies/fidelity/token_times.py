"""Times between tokens of saturated vLLM servers, as decode steps."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from simqueue.calibration import StepCase
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.hardware import Gpu, Model, load_gpu, load_model
from simqueue.steptime import Batch

TOKENS_FILE: Final = "mlenergy_v3.csv.gz"
PROMPT_TOKENS: Final = 200
"""Assumed prompt of a chat or a question; the source does not say it."""
TASKS: Final = ("lm-arena-chat", "gpqa")
"""Tasks with short prompts."""
NAMES: Final = {
    "llama-3.1-8b": ("meta-llama/Llama-3.1-8B-Instruct",),
    "qwen3-30b-a3b": ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-30B-A3B-Thinking-2507"),
    "qwen3-235b-a22b": ("Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen/Qwen3-235B-A22B-Thinking-2507"),
}
"""Name of the library -> names of the data, of the models that presets are fitted to."""


def token_cases(folder: Path, model: str) -> list[StepCase]:
    """Return the median times between tokens of a model on H100, served in bf16."""
    served, gpu = load_model(model).with_precision(everything="bf16"), load_gpu("h100-sxm")
    return [case for named in NAMES[model] for case in rows_of_tokens(folder, named, served, gpu)]


def rows_of_tokens(folder: Path, named: str, model: Model, gpu: Gpu) -> list[StepCase]:
    """Return the median times between tokens on H100 of the model that the data calls `named`, with short prompts."""
    rows = read_table(folder / TOKENS_FILE, TOKENS_FILE).rows()
    return [
        decode_case(row, model, gpu)
        for row in rows
        if row["model"] == named and row["gpu"] == "H100" and row["task"] in TASKS and row.integer("data_parallel") == 1
    ]


def decode_case(row: Row, model: Model, gpu: Gpu) -> StepCase:
    """Return a decode step at the mean number of requests, in the middle of their answers."""
    decodes = max(1, round(row.number("mean_batch_seqs")))
    context = PROMPT_TOKENS + round(row.number("mean_output_tokens") / 2)
    return StepCase(
        where=row.where,
        model=model,
        gpu=gpu,
        tensor_parallel=row.integer("gpus"),
        batch=Batch(decodes, decodes, decodes * context, (), decodes),
        measured_s=1e-3 * row.number("median_itl_ms", above=0),
        group=row["task"],
        expert_parallel=row.integer("expert_parallel") > 1,
    )
