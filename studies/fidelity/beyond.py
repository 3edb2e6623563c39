"""Errors outside what presets were fitted to: models, formats, GPUs, numbers of GPUs and loads left out in turn.

Each regime is put to rows of which the preset, or the fit, has seen none. Where a preset of the package was fitted to
other rows, it is taken as it is; where the regime divides the rows of one preset, it is fitted again without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.calibration import Case, ServedCase, fit, percent_errors, predict
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Coefficients, load_preset
from simqueue.steptime.model_error import is_of
from simqueue.steptime.validity import Regime
from studies.fidelity.blackwell import compare_blackwell
from studies.fidelity.evaluate import BEYOND_PRESETS, ComparedServed, Percent, compare_served
from studies.fidelity.moe_served import LEFT_OUT, ServedExperts, compare_experts
from studies.fidelity.recipes import CHUNKS, RECIPES, Recipe, Served
from studies.fidelity.tables import table
from studies.fidelity.token_times import rows_of_tokens

_MANY: Final = 32
"""Requests that run in a mean step, from which on a row is one of many."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """Errors of TPOT, in percent, of one preset or fit on rows that it has not seen."""

    regime: Regime
    what: str
    errors: Percent


def beyond(
    folder: Path,
    experts: Sequence[ServedExperts] | None = None,
    dense: Sequence[ComparedServed] | None = None,
) -> list[Beyond]:
    """Return the errors of every regime.

    Parameters
    ----------
    folder : Path
        The measurements.
    experts, dense : sequences, optional
        Served runs with presets that have not seen them, if they were compared before.
    """
    return [
        *map(_of_experts, compare_experts(folder, LEFT_OUT) if experts is None else experts),
        *map(_of_dense, compare_served(folder, BEYOND_PRESETS) if dense is None else dense),
        *_left_out(
            "other batches", folder, lambda case: _decodes(case) >= _MANY, f"rows of {_MANY} and more running requests"
        ),
        *_other_numbers(folder),
        *(_foreign(folder, *one) for one in _FOREIGN),
        *_blackwell(folder),
        *_tokens(folder),
    ]


def medians(found: Sequence[Beyond]) -> dict[Regime, tuple[float, int]]:
    """Return the median absolute error of each regime over all its rows, and their number."""
    pooled: dict[Regime, list[Percent]] = {}
    for one in found:
        pooled.setdefault(one.regime, []).append(one.errors)
    joined = {regime: np.abs(np.concatenate(parts)) for regime, parts in pooled.items()}
    return {regime: (float(np.median(errors)), len(errors)) for regime, errors in joined.items()}


def as_yaml(found: Sequence[Beyond]) -> str:
    """Return the errors as the file that the package reads."""
    lines = ["# Written by: python -m studies.fidelity --beyond FILE", "errors:"]
    for regime, (median, rows) in medians(found).items():
        lines.append(f"  - {{regime: {regime}, median_percent: {median:.1f}, rows: {rows}}}")
    return "\n".join(lines) + "\n"


def beyond_section(found: Sequence[Beyond]) -> Iterator[str]:
    """Yield the section of the report."""
    yield _TEXT
    rows = [
        (regime, str(count), f"**{median:.1f}**", "; ".join(_told(one) for one in found if one.regime == regime))
        for regime, (median, count) in medians(found).items()
    ]
    yield table(("rows that are", "rows", "TPOT median", "by preset: median (rows)"), rows)


_TEXT: Final = """\
## Outside the data of a preset

Errors of TPOT on rows of which the preset, or a fit of the same values, has seen none: what to expect where a run
leaves the range of its preset. A run states the error of its own case (`model_error_pct`): within the range the median
of the held-out rows of its preset, outside the largest of the medians below that apply.
"""


def _told(one: Beyond) -> str:
    return f"{one.what} {float(np.median(np.abs(one.errors))):.1f} ({len(one.errors)})"


def _of_experts(one: ServedExperts) -> Beyond:
    choice = one.choice
    layout = "whole" if choice.whole else "divided"
    what = f"`{choice.preset}` on {choice.engine}, {choice.model}, {choice.gpu}, {layout} experts"
    return Beyond(_regime(choice.preset, choice.engine, choice.gpu, layout), what, one.tpot)


def _of_dense(one: ComparedServed) -> Beyond:
    row = one.rows[0]
    what = f"`{one.tpot.preset}` on {one.tpot.source}, {one.tpot.gpu}"
    regime = _regime(one.tpot.preset, row.engine, one.tpot.gpu, "none")
    return Beyond("another weight format" if regime == "another model" else regime, what, one.tpot.calibrated)


def _regime(preset: str, engine: str, gpu: str, layout: str) -> Regime:
    """Return what a preset has not seen of some runs, the most important first."""
    card = load_preset(preset).card
    if not is_of(card, {"trtllm": "tensorrt"}.get(engine, engine)):
        return "another engine"
    if card.gpu != gpu:
        return "another GPU"
    return "another model" if layout in (card.valid.experts or ()) else "another kind of model"


_FOREIGN: Final[tuple[tuple[Regime, str, Served, str], ...]] = (
    ("another weight format", "vllm-h100-qwen3-32b", Served("vllm", "llama-3.1-70b", "fp8"), "h100-sxm"),
    ("another weight format", "vllm-h100-llama-70b", Served("vllm", "qwen3-32b", "bf16", CHUNKS), "h100-sxm"),
    ("another GPU", "vllm-h200", Served("vllm", "llama-3.1-70b", "fp8"), "h100-sxm"),
    ("another GPU", "vllm-h100-llama-70b", Served("vllm", "llama-3.1-70b", "fp8"), "h200-sxm"),
    ("kernels alone", "vllm-h100-kernels", Served("vllm", "llama-3.1-70b", "fp8"), "h100-sxm"),
    ("kernels alone", "vllm-h100-kernels", Served("vllm", "qwen3-32b", "bf16", CHUNKS), "h100-sxm"),
    ("kernels alone", "vllm-h200-kernels", Served("vllm", "llama-3.1-70b", "fp8"), "h200-sxm"),
)
"""Regime, preset, runs that the preset was not fitted to, and their GPU."""


def _foreign(folder: Path, regime: Regime, preset: str, runs: Served, gpu: str) -> Beyond:
    cases = runs.cases(folder, gpu, ttft=False)
    what = f"`{preset}` on {runs.model} in {runs.precision}, {gpu}"
    return Beyond(regime, what, percent_errors(cases, predict(cases, load_preset(preset).coefficients)))


def _blackwell(folder: Path) -> Iterator[Beyond]:
    """Yield presets of the H200 on B200, with the model that they were fitted to."""
    for one in compare_blackwell(folder):
        if (one.preset, one.runs.model) in _ON_BLACKWELL:
            yield Beyond("another GPU", f"`{one.preset}` on {one.runs.model}, b200", one.tpot)


_ON_BLACKWELL: Final = (("vllm-h200", "llama-3.1-70b"), ("vllm-h200-minimax-m2.5", "minimax-m2.5"))
"""Preset, and the model that it was fitted to on H200."""

_TOKENS: Final[tuple[tuple[Regime, str, str, str], ...]] = (
    ("another model", "vllm-h100-llama-8b", "Qwen/Qwen3-32B", "qwen3-32b"),
    ("another model", "vllm-h100-llama-8b", "google/gemma-3-27b-it", "gemma-3-27b"),
    ("another model", "vllm-h100-qwen3-32b", "meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
    ("another model", "vllm-h100-qwen3-32b", "google/gemma-3-27b-it", "gemma-3-27b"),
    ("kernels alone", "vllm-h100-kernels", "meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
    ("another kind of model", "vllm-h100", "Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
    ("another kind of model", "vllm-h100", "Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"),
    ("another kind of model", "vllm-h100", "openai/gpt-oss-120b", "gpt-oss-120b"),
)
"""Regime, preset, and the name of a model in the times between tokens and in the library."""


def _tokens(folder: Path) -> Iterator[Beyond]:
    gpu = load_gpu("h100-sxm")
    for regime, preset, named, model in _TOKENS:
        served = load_model(model)
        served = served if served.expert_format == "fp4" else served.with_precision(everything="bf16")
        cases = rows_of_tokens(folder, named, served, gpu)
        errors = percent_errors(cases, predict(cases, load_preset(preset).coefficients))
        yield Beyond(regime, f"`{preset}` on {model}", errors)


_DIVIDED: Final = ("vllm-h100-llama-70b", "vllm-h100-qwen3-32b", "sglang-h100")
"""Presets with rows of several numbers of GPUs and of few and many clients."""


def _other_numbers(folder: Path) -> Iterator[Beyond]:
    regime: Regime = "another number of GPUs"
    yield from _left_out(regime, folder, lambda case: case.tensor_parallel == 2, "TP 2")
    yield from _left_out(regime, folder, lambda case: case.tensor_parallel == 8, "TP 8")


def _left_out(regime: Regime, folder: Path, out: Callable[[Case], bool], what: str) -> Iterator[Beyond]:
    """Yield the errors of each divided preset's rows for which `out` holds, under a fit to its other rows."""
    for recipe in RECIPES:
        if recipe.name in _DIVIDED:
            cases = [case for case in recipe.cases(folder) if case.phase == "served"]
            held, kept = [case for case in cases if out(case)], [case for case in cases if not out(case)]
            values = _without_front_end(recipe, kept)
            yield Beyond(regime, f"`{recipe.name}` without {what}", percent_errors(held, predict(held, values)))


def _without_front_end(recipe: Recipe, cases: Sequence[Case]) -> Coefficients:
    free = [name for name in recipe.free if not name.startswith("first_token")]
    base = load_preset(str(recipe.base)).coefficients.model_dump()
    fixed = {name: value for name, value in base.items() if name not in free}
    return fit(cases, free, fixed, recipe.start).coefficients


def _decodes(case: Case) -> float:
    """Return how many requests run in a mean step of a served case."""
    if not isinstance(case, ServedCase):
        return float(case.batch.decode_seqs)
    weights = np.array(case.weights)
    return float(weights @ np.array([batch.decode_seqs for batch in case.batches]) / weights.sum())
