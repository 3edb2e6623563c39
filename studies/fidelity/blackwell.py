"""Served runs on B200, which no kernel was measured on: left out of every fit on Hopper, and presets of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.calibration import Case, ServedCase, error_row, percent_errors, predict
from simqueue.calibration.closed_loop import ClosedLoop, compose
from simqueue.calibration.served_rows import drawn_lengths
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.hardware import Gpu, Model, kv_pool_blocks, load_gpu, load_model
from simqueue.hardware.precision import known_format
from simqueue.steptime import load_preset
from studies.fidelity.evaluate import Percent
from studies.fidelity.recipes import AICONFIGURATOR, ROUTED, SERVED, Recipe
from studies.fidelity.served import BLOCK_SIZE, MEMORY_SHARE, REQUESTS_PER_CLIENT, SCHEDULERS, SEED
from studies.fidelity.tables import table

BLACKWELL_FILE: Final = "served_blackwell.csv.gz"
MODELS: Final = {
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
    "deepseek-ai/DeepSeek-R1": "deepseek-v3",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "openai/gpt-oss-120b": "gpt-oss-120b",
}
BASE: Final = "vllm-h200-kernels"
DRAWN: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
"""Tables with a date are of InferenceMAX; their lengths are drawn from 0.8 to 1.0 of the nominal ones."""

_TEXT: Final = """\
### B200 left out

TPOT of vLLM on B200 (`served_blackwell.csv.gz`), predicted with presets that were fitted on H200: nothing on this GPU
was measured for them but its peaks of bandwidth and FLOP/s, and all-reduces are estimated from its link. The presets of
B200 (`vllm-b200` and others) start from the same kernels of the H200; their files have the errors of rows left out.
"""


@dataclass(frozen=True, slots=True)
class OnBlackwell:
    """Served runs on B200: engine, model, format of the weights, and whether GPUs had whole experts."""

    engine: str
    model: str
    weights: str
    whole: bool = False

    def has(self, row: Row) -> bool:
        """Return whether a row is one of these runs."""
        return (
            reason_not_compared(row) is None
            and (row["engine"], MODELS[row["model"]], row["weights"]) == (self.engine, self.model, self.weights)
            and (_degree(row, "moe_expert_parallel") > 1) == self.whole
        )


LEFT_OUT: Final = (
    (OnBlackwell("vllm", "llama-3.1-70b", "fp8"), "vllm-h200"),
    (OnBlackwell("vllm", "minimax-m2.5", "fp8"), "vllm-h200"),
    (OnBlackwell("vllm", "minimax-m2.5", "fp8"), "vllm-h200-minimax-m2.5"),
)
"""Runs, and a preset that was fitted on H200."""


@dataclass(frozen=True, slots=True)
class BlackwellErrors:
    """Errors of TPOT of some runs with a preset, in percent of the measured values."""

    runs: OnBlackwell
    preset: str
    tpot: Percent


def compare_blackwell(folder: Path) -> list[BlackwellErrors]:
    """Compare the runs of `LEFT_OUT`."""
    cases = {runs: tpot_cases(folder, runs) for runs, _ in LEFT_OUT}
    compared = []
    for runs, preset in LEFT_OUT:
        predicted_s = predict(cases[runs], load_preset(preset).coefficients)
        compared.append(BlackwellErrors(runs, preset, percent_errors(cases[runs], predicted_s)))
    return compared


def tpot_cases(folder: Path, runs: OnBlackwell) -> list[ServedCase]:
    """Return mean TPOT of these runs."""
    return [_case(row) for row in read_table(folder / BLACKWELL_FILE, BLACKWELL_FILE).rows() if runs.has(row)]


def reason_not_compared(row: Row) -> str | None:
    """Return why a row can be neither compared nor fitted; None if it can."""
    if row["suspect"] == "1":
        return "doubted by the collection"
    if row["gpu"] != "B200" or row["model"] not in MODELS:
        return "B300 and GB200, and models that are not in the library"
    if _degree(row, "attention_data_parallel") > 1 or _degree(row, "pipeline_parallel") > 1:
        return "attention data parallel or pipeline parallel, which are not simulated"
    both = _degree(row, "moe_tensor_parallel") > 1 and _degree(row, "moe_expert_parallel") > 1
    return "experts divided over the GPUs in both ways at once, which is not simulated" if both else None


def reason_not_used(row: Row) -> str | None:
    """Return why a row is in no comparison and no fit; None if it is in one."""
    why = reason_not_compared(row)
    used = (*(runs for runs, _ in LEFT_OUT), *(runs for _, runs in _FITTED.values()))
    if why is None and not any(runs.has(row) for runs in used):
        return "no preset is fitted to these engines, models and formats on B200"
    return why


def blackwell_section(compared: Sequence[BlackwellErrors]) -> Iterator[str]:
    """Yield the part of the report."""
    yield _TEXT
    rows = []
    for one in compared:
        row = error_row("", one.tpot)
        rows.append(
            (
                f"{one.runs.engine}, {one.runs.model} {one.runs.weights}",
                *(f"`{one.preset}`", str(row.rows), f"**{row.mape:.1f}**"),
                *(f"{row.median:.1f}", f"{row.bias:+.1f}", f"{row.worst:.0f}"),
            )
        )
    yield table(("engine, model", "preset", "rows", "TPOT MAPE", "median", "bias", "worst"), rows)


def _degree(row: Row, name: str) -> int:
    return 1 if row[name] in {"", "NA"} else row.integer(name)


@cache
def _hardware(model: str, weights: str) -> tuple[Model, Gpu]:
    """Return a model as it was served, and the GPU; experts of gpt-oss have a format of their own."""
    found = load_model(model, Path())
    served = found if model == "gpt-oss-120b" else found.with_precision(weights=known_format(weights))
    return served, load_gpu("b200", Path())


def _case(row: Row) -> ServedCase:
    model, gpu = _hardware(MODELS[row["model"]], row["weights"])
    tensor_parallel, clients = row.integer("tensor_parallel"), row.integer("clients")
    generator, shortest = np.random.default_rng(SEED), 0.8 if DRAWN.search(row["source_file"]) else 1.0
    prompts, outputs = (
        drawn_lengths(row.integer(name), shortest, REQUESTS_PER_CLIENT * clients, generator)
        for name in ("prompt_tokens", "output_tokens")
    )
    loop = ClosedLoop(
        prompts,
        outputs,
        clients,
        blocks=kv_pool_blocks(gpu, model, tensor_parallel, MEMORY_SHARE, BLOCK_SIZE),
        block_size=BLOCK_SIZE,
        scheduler=SCHEDULERS[row["engine"]],
        separate=row["engine"] == "sglang",
    )
    steps = compose(loop)
    return ServedCase(
        where=row.where,
        model=model,
        gpu=gpu,
        tensor_parallel=tensor_parallel,
        batches=steps.batches,
        weights=steps.tpot_weights.tolist(),
        measured_s=1e-3 * row.number("mean_tpot_ms", above=0),
        expert_parallel=_degree(row, "moe_expert_parallel") > 1,
    )


def _recipe(name: str, what: str, free: Sequence[str], runs: OnBlackwell) -> Recipe:
    def cases(folder: Path) -> Sequence[Case]:
        return tpot_cases(folder, runs)

    return Recipe(
        name=name,
        description=f"{ENGINES[runs.engine]} on b200, served: {what}",
        gpu="b200",
        engine=ENGINES[runs.engine],
        fitted_on=f"{AICONFIGURATOR}, silicon_sample.csv: mean TPOT of closed loops, {what}; kernels of the H200",
        cases=cases,
        free=free,
        base=BASE,
        version=1,
    )


ENGINES: Final = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "sglang": "SGLang"}

_FITTED: Final = {
    "vllm-b200": ("Llama 3.1 70B in FP8", OnBlackwell("vllm", "llama-3.1-70b", "fp8")),
    "vllm-b200-minimax-m2.5": ("MiniMax-M2.5 in FP8", OnBlackwell("vllm", "minimax-m2.5", "fp8")),
    "trtllm-b200-gpt-oss": ("gpt-oss 120b, MXFP4 experts", OnBlackwell("trtllm", "gpt-oss-120b", "fp4")),
    "sglang-b200-deepseek": (
        "DeepSeek R1 in FP4, whole experts on each GPU",
        OnBlackwell("sglang", "deepseek-v3", "fp4", whole=True),
    ),
}

BLACKWELL_RECIPES: Final = tuple(
    _recipe(name, what, SERVED if runs.model == "llama-3.1-70b" else ROUTED, runs)
    for name, (what, runs) in _FITTED.items()
)
"""The presets of B200."""
