"""The comparisons of the fidelity report: measured times with the ideal roofline and with a preset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simqueue.calibration import Case, StepCase, percent_errors, predict, price
from simqueue.steptime import RooflineSettings, load_preset
from simqueue.steptime.roofline import RooflineStepTime
from studies.fidelity.parts import part_cases, without_sequences
from studies.fidelity.served import BUDGET, ServedRow, served_rows
from studies.fidelity.steps import step_cases

Percent = NDArray[np.float64]
ServedPreset = tuple[str, str, str, str, str]

STEP_PRESETS: Final = (
    ("aiconfigurator", "h100-sxm", "vllm-h100-kernels"),
    ("aiconfigurator", "h200-sxm", "vllm-h200-kernels"),
    ("aiconfigurator", "a100-80gb", "vllm-a100-kernels"),
    ("llmservingsim", "rtx-4090", "vllm-rtx-4090-kernels"),
    ("llmservingsim", "rtx-pro-6000", "vllm-rtx-pro-6000-kernels"),
    ("llmservingsim-engine", "rtx-4090", "vllm-rtx-4090"),
    ("llmservingsim-engine", "rtx-pro-6000", "vllm-rtx-pro-6000"),
    ("splitwise", "h100-sxm", "vllm-2023-h100"),
    ("splitwise", "a100-80gb", "vllm-2023-a100"),
)
"""Source, GPU, and the preset compared with it."""

SERVED_PRESETS: Final = (
    ("vllm", "llama-3.1-70b", "fp8", "h100-sxm", "vllm-h100-llama-70b"),
    ("vllm", "llama-3.1-70b", "fp8", "h200-sxm", "vllm-h200"),
    ("vllm", "qwen3-32b", "bf16", "h100-sxm", "vllm-h100-qwen3-32b"),
    ("trtllm", "llama-3.1-8b", "bf16", "h100-sxm", "trtllm-h100"),
    ("sglang", "qwen3-32b", "bf16", "h100-sxm", "sglang-h100"),
)
"""Engine, model, precision, GPU, and the preset compared with it."""

BEYOND_PRESETS: Final = (
    ("trtllm", "qwen3-32b", "fp8", "h100-sxm", "trtllm-h100"),
    ("trtllm", "llama-3.1-70b", "fp8", "h200-sxm", "vllm-h200"),
    ("sglang", "llama-3.1-8b", "fp8", "h200-sxm", "vllm-h200"),
    ("vllm", "qwen3-32b", "fp8", "h100-sxm", "vllm-h100"),
)
"""As `SERVED_PRESETS`: rows of dense models that no preset is fitted to, and the nearest preset."""

KERNELS: Final = {"h100-sxm": "vllm-h100-kernels", "h200-sxm": "vllm-h200-kernels"}
"""The preset of the kernels on each GPU that served runs were measured on."""

PART_PRESETS: Final = (("h100-sxm", "vllm-h100-kernels"), ("a100-80gb", "vllm-a100-kernels"))


@dataclass(frozen=True, slots=True)
class Compared:
    """Errors of the ideal roofline and of a preset for one set of measurements, in percent of the measured time."""

    source: str
    gpu: str
    preset: str
    cases: Sequence[Case]
    ideal: Percent
    calibrated: Percent


@dataclass(frozen=True, slots=True)
class ComparedServed:
    """Mean TPOT of served runs as `Compared`, the errors of mean TTFT, and those of TPOT with the kernels alone."""

    rows: Sequence[ServedRow]
    tpot: Compared
    ttft: Percent
    kernels: Percent


def compare_steps(folder: Path) -> list[Compared]:
    """Compare the times of whole steps, by source and GPU."""
    every = step_cases(folder)
    compared = []
    for source, gpu, preset in STEP_PRESETS:
        cases = [case for case in every if case.group == source and case.gpu.name == gpu]
        compared.append(_compared(source, gpu, preset, cases))
    return compared


def compare_parts(folder: Path) -> list[Compared]:
    """Compare the times of parts of steps with the linear terms of the kernel presets."""
    every = part_cases(folder)
    compared = []
    for gpu, preset in PART_PRESETS:
        cases = [case for case in every if case.gpu.name == gpu]
        values = without_sequences(load_preset(preset).coefficients)
        calibrated = percent_errors(cases, predict(cases, values))
        compared.append(Compared("vidur", gpu, preset, cases, percent_errors(cases, _ideal_s(cases)), calibrated))
    return compared


def compare_served(folder: Path, presets: Sequence[ServedPreset] = SERVED_PRESETS) -> list[ComparedServed]:
    """Compare the mean TPOT and TTFT of closed-loop runs."""
    compared = []
    for engine, model, precision, gpu, preset in presets:
        card = load_preset(preset).card
        budget = None if card.server is None else card.server.max_num_batched_tokens
        rows = served_rows(folder, engine, model, precision, gpu, budget or BUDGET)
        tpot = _compared(f"{engine}, {model} {precision}", gpu, preset, [row.tpot for row in rows])
        ttft_cases = [row.ttft for row in rows]
        ttft_s = predict(ttft_cases, load_preset(preset).coefficients, card.front_end)
        ttft = percent_errors(ttft_cases, ttft_s)
        kernels = percent_errors(tpot.cases, predict(tpot.cases, load_preset(KERNELS[gpu]).coefficients))
        compared.append(ComparedServed(rows, tpot, ttft, kernels))
    return compared


def phase_of(case: Case) -> str:
    """Return the phase of a case: decode, prefill or mixed; ``served`` if it is a served run."""
    return case.phase if isinstance(case, StepCase) else "served"


def _compared(source: str, gpu: str, preset: str, cases: Sequence[Case]) -> Compared:
    calibrated = percent_errors(cases, predict(cases, load_preset(preset).coefficients))
    return Compared(source, gpu, preset, cases, percent_errors(cases, _ideal_s(cases)), calibrated)


def _ideal_s(cases: Sequence[Case]) -> NDArray[np.float64]:
    bandwidth_share, mfu = RooflineSettings().shares()
    return price(cases, lambda case: _ideal(case, bandwidth_share, mfu))


def _ideal(case: Case, bandwidth_share: float, mfu: float) -> RooflineStepTime:
    deployment = (case.model, case.gpu, case.tensor_parallel)
    return RooflineStepTime.of(*deployment, bandwidth_share=bandwidth_share, mfu=mfu)
