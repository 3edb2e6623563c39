"""Served mixtures of experts: rows that presets are fitted to, and rows of models, GPUs and engines left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simqueue.calibration import Case, StepCase, percent_errors, predict
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.hardware import Model, load_gpu, load_model
from simqueue.steptime import load_preset
from studies.fidelity.evaluate import Percent
from studies.fidelity.served import ServedRow, selected, served_rows
from studies.fidelity.token_times import TASKS, TOKENS_FILE, decode_case

TOKEN_MODELS: Final = {
    "Qwen/Qwen3-30B-A3B-Instruct-2507": ("qwen3-30b-a3b", "vllm-h100"),
    "Qwen/Qwen3-30B-A3B-Thinking-2507": ("qwen3-30b-a3b", "vllm-h100"),
    "Qwen/Qwen3-235B-A22B-Instruct-2507": ("qwen3-235b-a22b", "vllm-h100"),
    "Qwen/Qwen3-235B-A22B-Thinking-2507": ("qwen3-235b-a22b", "vllm-h100"),
    "openai/gpt-oss-120b": ("gpt-oss-120b", "vllm-h100-gpt-oss"),
    "openai/gpt-oss-20b": ("gpt-oss-20b", "vllm-h100-gpt-oss"),
}
"""Name of the data -> name of the library, and the preset compared with it; none is fitted to these rows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Served runs, and the preset compared with them.

    Attributes
    ----------
    engine, model, precision, gpu : str
        As in `served_rows`.
    whole : bool
        Whether the GPUs had whole experts.
    preset : str
    """

    engine: str
    model: str
    precision: str
    gpu: str
    whole: bool
    preset: str

    def has(self, row: Row) -> bool:
        """Return whether a row of the table is one of these runs."""
        kind = (self.engine, self.model, self.precision, self.gpu)
        return selected(row, *kind) and (row.number("moe_ep_size", empty=1) > 1) == self.whole


FITTED: Final = (
    Choice("vllm", "gpt-oss-120b", "fp4", "h100-sxm", whole=False, preset="vllm-h100-gpt-oss"),
    Choice("vllm", "gpt-oss-120b", "fp4", "h200-sxm", whole=False, preset="vllm-h200-gpt-oss"),
    Choice("vllm", "minimax-m2.5", "fp8", "h200-sxm", whole=False, preset="vllm-h200-minimax-m2.5"),
    Choice("trtllm", "gpt-oss-120b", "fp4", "h200-sxm", whole=False, preset="trtllm-h200-gpt-oss"),
    Choice("trtllm", "qwen3-235b-a22b", "fp8", "h100-sxm", whole=True, preset="trtllm-h100-qwen3-235b"),
    Choice("trtllm", "deepseek-v3", "fp8", "h200-sxm", whole=False, preset="trtllm-h200-deepseek"),
    Choice("sglang", "deepseek-v3", "fp8", "h200-sxm", whole=False, preset="sglang-h200-deepseek"),
    Choice("sglang", "qwen3-235b-a22b", "fp8", "h200-sxm", whole=False, preset="sglang-h200-qwen3-235b"),
)
"""Runs with the preset that is fitted to them."""

LEFT_OUT: Final = (
    Choice("vllm", "minimax-m2.5", "fp8", "h200-sxm", whole=False, preset="vllm-h200"),
    Choice("vllm", "minimax-m2.5", "fp8", "h100-sxm", whole=True, preset="vllm-h100"),
    Choice("vllm", "gpt-oss-120b", "fp4", "h100-sxm", whole=False, preset="vllm-h200-gpt-oss"),
    Choice("vllm", "gpt-oss-120b", "fp4", "h200-sxm", whole=False, preset="vllm-h100-gpt-oss"),
    Choice("sglang", "deepseek-v3", "fp8", "h200-sxm", whole=False, preset="sglang-h200-qwen3-235b"),
    Choice("sglang", "qwen3-235b-a22b", "fp8", "h200-sxm", whole=False, preset="sglang-h200-deepseek"),
    Choice("trtllm", "qwen3-235b-a22b", "fp8", "h100-sxm", whole=True, preset="vllm-h100-gpt-oss"),
    Choice("trtllm", "gpt-oss-120b", "fp4", "h200-sxm", whole=False, preset="trtllm-h100-qwen3-235b"),
    Choice("trtllm", "deepseek-v3", "fp8", "h200-sxm", whole=False, preset="trtllm-h200-gpt-oss"),
    Choice("trtllm", "deepseek-v3", "fp8", "h200-sxm", whole=True, preset="trtllm-h200-deepseek"),
)
"""Runs with the nearest preset that is not fitted to their model, GPU or engine."""


@dataclass(frozen=True, slots=True)
class ServedExperts:
    """Errors of TPOT and TTFT of the runs of one choice, in percent of the measured values."""

    choice: Choice
    cases: Sequence[Case]
    tpot: Percent
    ttft: Percent


@dataclass(frozen=True, slots=True)
class TokenTimes:
    """Median time between tokens of saturated servers, predicted as a decode step, for one model and preset."""

    model: str
    preset: str
    cases: Sequence[StepCase]
    errors: Percent


def compare_experts(folder: Path, choices: Sequence[Choice]) -> list[ServedExperts]:
    """Compare mean TPOT and TTFT of closed loops; each run is simulated once."""
    runs: dict[tuple[str, str, str, str], list[ServedRow]] = {}
    compared = []
    for choice in choices:
        kind = (choice.engine, choice.model, choice.precision, choice.gpu)
        if kind not in runs:
            runs[kind] = served_rows(folder, *kind)
        rows = [row for row in runs[kind] if row.tpot.expert_parallel == choice.whole]
        preset = load_preset(choice.preset)
        tpot, ttft = [row.tpot for row in rows], [row.ttft for row in rows]
        errors = [
            percent_errors(cases, predict(cases, preset.coefficients, preset.card.front_end)) for cases in (tpot, ttft)
        ]
        compared.append(ServedExperts(choice, tpot, *errors))
    return compared


def compare_tokens(folder: Path) -> list[TokenTimes]:
    """Compare the median time between tokens on H100, by model."""
    gpu, models = load_gpu("h100-sxm"), {name: _model(name) for name, _ in TOKEN_MODELS.values()}
    cases: dict[tuple[str, str], list[StepCase]] = {}
    for row in read_table(folder / TOKENS_FILE, TOKENS_FILE).rows():
        if reason_no_token_time(row) is None:
            key = TOKEN_MODELS[row["model"]]
            cases.setdefault(key, []).append(decode_case(row, models[key[0]], gpu))
    compared = []
    for (model, preset), found in cases.items():
        errors = percent_errors(found, predict(found, load_preset(preset).coefficients))
        compared.append(TokenTimes(model, preset, found, errors))
    return compared


def reason_no_token_time(row: Row) -> str | None:
    """Return why a row is not compared; None if it is."""
    if row["gpu"] != "H100":
        return f"{row['gpu']}: no preset of a server"
    if row["model"] not in TOKEN_MODELS:
        return "dense models, and mixtures of experts that are not in the library"
    if row.integer("data_parallel") > 1:
        return "attention data parallel: each GPU has requests of its own, which is not simulated"
    return None if row["task"] in TASKS else f"{row['task']}: prompts of unknown length, not short"


def _model(name: str) -> Model:
    """Return a model as it was served: in bf16, gpt-oss with experts in MXFP4."""
    model = load_model(name)
    return model if model.expert_format == "fp4" else model.with_precision(everything="bf16")
