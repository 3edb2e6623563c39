"""Power of saturated servers: fits the energy of a byte and of a FLOP for each GPU, and leaves out models in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simqueue.calibration import error_row
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.hardware import Gpu, Model, Power, load_gpu, load_model
from simqueue.steptime import Batch, load_preset
from simqueue.steptime.calibrated import CalibratedStepTime
from studies.fidelity.tables import table
from studies.fidelity.token_times import PROMPT_TOKENS, TASKS, TOKENS_FILE

GPUS: Final = {"H100": ("h100-sxm", 700.0), "B200": ("b200", 1000.0)}
"""Name of the data -> name of the library, and the limit of the power (NVIDIA's datasheets)."""

MODELS: Final = {
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "meta-llama/Llama-3.1-405B-Instruct": "llama-3.1-405b",
    "meta-llama/Llama-3.1-405B-Instruct-FP8": "llama-3.1-405b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "google/gemma-3-27b-it": "gemma-3-27b",
    "Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b",
    "Qwen/Qwen3-30B-A3B-Thinking-2507": "qwen3-30b-a3b",
    "Qwen/Qwen3-235B-A22B-Instruct-2507": "qwen3-235b-a22b",
    "Qwen/Qwen3-235B-A22B-Thinking-2507": "qwen3-235b-a22b",
    "deepseek-ai/DeepSeek-V3.1": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-v3",
    "openai/gpt-oss-20b": "gpt-oss-20b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
}
COUNTED_WITH: Final = "vllm-h100-kernels"
"""Bytes and FLOPs of a step are the same with every preset without `routing_correlation`."""

START: Final = (300.0, 20.0, 1.0)
BOUNDS: Final = ((0.0, 0.0, 0.0), (1000.0, 1000.0, 100.0))
"""Watts, pJ per byte, pJ per FLOP."""

NOISE: Final = 0.05
Values = NDArray[np.float64]

_TEXT: Final = """\
## Power

Mean power of a GPU in the saturated servers of `mlenergy_v3.csv.gz` (vLLM, chats and questions), in watts: a constant,
and the energy of the bytes that a decode step moves and of its FLOPs, at most the limit of the GPU. How long a step
took is measured here (mean number of requests over output tokens per second), so that these are errors of the power
alone. Prompts, the CPU and the rest of the server are not included. In the last columns each model is predicted by a
fit to the others. The constant is most of the power. The energies are those that describe these rows best, and no
constants of physics: bytes and FLOPs grow together with the number of requests.
"""


@dataclass(frozen=True, slots=True)
class PowerCase:
    """One saturated run: bytes and FLOPs per second of a GPU, and its power."""

    gpu: str
    model: str
    moved_bytes_per_s: float
    flops_per_s: float
    measured_w: float


@dataclass(frozen=True, slots=True)
class FittedPower:
    """The power of one GPU, its errors in percent, and those of each model if it is left out."""

    gpu: str
    cases: Sequence[PowerCase]
    power: Power
    errors: Values
    left_out_errors: Values


def power_cases(folder: Path) -> list[PowerCase]:
    """Return the runs whose step is known."""
    rows = read_table(folder / TOKENS_FILE, TOKENS_FILE).rows()
    return [_case(row) for row in rows if reason_no_power(row) is None]


def reason_no_power(row: Row) -> str | None:
    """Return why a row is not used; None if it is."""
    if row["model"] not in MODELS:
        return "models that are not in the library"
    if row.integer("data_parallel") > 1:
        return "attention data parallel: each GPU has requests of its own, which is not simulated"
    return None if row["task"] in TASKS else f"{row['task']}: prompts of unknown length, not short"


def fit_power(cases: Sequence[PowerCase]) -> list[FittedPower]:
    """Fit the power of each GPU."""
    return [_fitted(name, limit_w, [case for case in cases if case.gpu == name]) for name, limit_w in GPUS.values()]


def power_section(fitted: Sequence[FittedPower]) -> Iterator[str]:
    """Yield the part of the report."""
    yield _TEXT
    yield table(
        (
            *("GPU", "rows", "models", "measured W", "constant W", "pJ per byte", "pJ per FLOP"),
            *("MAPE", "median", "bias", "worst", "model left out: MAPE", "median", "worst"),
        ),
        [_line(one) for one in fitted],
    )


def _line(one: FittedPower) -> Sequence[str]:
    row, held = error_row("", one.errors), error_row("", one.left_out_errors)
    watts, power = [case.measured_w for case in one.cases], one.power
    return (
        *(
            one.gpu,
            str(row.rows),
            str(len({case.model for case in one.cases})),
            f"{min(watts):.0f} to {max(watts):.0f}",
        ),
        *(f"{power.running_w:.0f}", f"{1e12 * power.j_per_byte:.3g}", f"{1e12 * power.j_per_flop:.3g}"),
        *(f"**{row.mape:.1f}**", f"{row.median:.1f}", f"{row.bias:+.1f}", f"{row.worst:.0f}"),
        *(f"**{held.mape:.1f}**", f"{held.median:.1f}", f"{held.worst:.0f}"),
    )


def _fitted(gpu: str, limit_w: float, cases: Sequence[PowerCase]) -> FittedPower:
    power, models = _power(cases, limit_w), np.array([case.model for case in cases])
    left_out = np.empty(len(cases))
    for model in dict.fromkeys(models.tolist()):
        others = _power([case for case in cases if case.model != model], limit_w)
        left_out[models == model] = _errors([case for case in cases if case.model == model], others)
    return FittedPower(gpu, cases, power, _errors(cases, power), left_out)


def _power(cases: Sequence[PowerCase], limit_w: float) -> Power:
    def made(values: Values) -> Power:
        return Power(float(values[0]), 1e-12 * float(values[1]), 1e-12 * float(values[2]), limit_w)

    found = least_squares(
        lambda values: _errors(cases, made(values)) / 100,
        START,
        bounds=BOUNDS,
        loss="soft_l1",
        f_scale=NOISE,
        x_scale=START,
    )
    return made(np.array([float(f"{value:.3g}") for value in found.x]))


def _errors(cases: Sequence[PowerCase], power: Power) -> Values:
    return np.array(
        [100 * (power.watts(1.0, case.moved_bytes_per_s, case.flops_per_s) / case.measured_w - 1) for case in cases]
    )


def _case(row: Row) -> PowerCase:
    name, _ = GPUS[row["gpu"]]
    gpus, seqs = row.integer("gpus"), row.number("mean_batch_seqs", above=0)
    decodes = max(1, round(seqs))
    context = PROMPT_TOKENS + round(row.number("mean_output_tokens") / 2)
    terms = _steps(row["model"], row["weights"], name, gpus).explain(
        Batch(decodes, decodes, decodes * context, (), decodes)
    )
    steps_per_s = row.number("output_tokens_per_s", above=0) / seqs
    return PowerCase(
        gpu=name,
        model=MODELS[row["model"]],
        moved_bytes_per_s=steps_per_s * sum(term.bytes_moved or 0.0 for term in terms),
        flops_per_s=steps_per_s * sum(term.flops or 0.0 for term in terms),
        measured_w=row.number("mean_power_all_gpus_w", above=0) / gpus,
    )


@cache
def _steps(name: str, weights: str, gpu: str, gpus: int) -> CalibratedStepTime:
    return CalibratedStepTime.of(_model(name, weights), _gpu(gpu), gpus, load_preset(COUNTED_WITH).coefficients)


def _gpu(name: str) -> Gpu:
    return load_gpu(name, Path())


def _model(name: str, weights: str) -> Model:
    model = load_model(MODELS[name], Path())
    if weights == "fp8":
        return model.with_precision(weights="fp8")
    return model.with_precision(everything="bf16") if weights == "bfloat16" else model
