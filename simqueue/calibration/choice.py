"""Which values a set of measurements can determine, and the source of the other values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from simqueue.calibration.case import Case, StepCase
from simqueue.calibration.errors import ErrorRow
from simqueue.calibration.fit import FRONT_END, START, Fit
from simqueue.steptime import Coefficients
from simqueue.steptime.preset import Preset, load_preset

ENOUGH_PERCENT: Final = 10.0
"""Mean absolute error on the fitted rows above which a fit has a warning; the packaged presets are below it."""

SERVED: Final = ("mfu", "seq_us", "step_ms")
"""Values that means of served runs can determine: time per prompt token, per sequence, and per step."""


def free_for(cases: Sequence[Case], names: Sequence[str] | None) -> list[str]:
    """Return the values to fit: `names`, else the values that rows of these kinds depend on."""
    if names is not None:
        return list(names)
    steps = [case for case in cases if isinstance(case, StepCase)]
    if steps:
        return list(_for_steps(steps))
    prompts = {getattr(case, "prompt_tokens", None) for case in cases} - {None}
    return [*SERVED, *FRONT_END[: min(len(prompts), len(FRONT_END))]]  # equal prompts cannot tell the part per token


def _for_steps(cases: Sequence[StepCase]) -> Iterator[str]:
    phases = {case.phase for case in cases}
    yield "bandwidth_share"
    if phases & {"prefill", "mixed"}:
        yield from ("mfu", "attention_mfu")
    if phases & {"decode", "mixed"}:
        yield "kv_bandwidth_share"
    if "mixed" in phases:
        yield from ("mixed_kv_bandwidth_share", "walk_ns", "prefill_layer_us")
    yield from ("layer_us", "seq_us")
    if any(case.tensor_parallel > 1 and case.gpu.allreduce(case.tensor_parallel) is None for case in cases):
        yield from ("link_share", "allreduce_us")
    if any(case.model.experts and case.gpu.grouped_gemm(case.model.expert_format) is None for case in cases):
        yield from ("expert_bandwidth_share", "expert_mfu", "expert_layer_us")


def held_fixed(base: str | None, free: Sequence[str]) -> dict[str, float | None]:
    """Return the values that are not fitted, from the base preset; empty without one."""
    preset = _base(base)
    if preset is None:
        return {}
    front_end = {} if preset.card.front_end is None else preset.card.front_end.model_dump(include=set(FRONT_END))
    return {name: value for name, value in (*preset.coefficients, *front_end.items()) if name not in free}


def start_from(base: str | None) -> Mapping[str, float]:
    """Return the start of the search: the values of the base preset; empty without one."""
    preset = _base(base)
    return {} if preset is None else {name: value for name, value in preset.coefficients if value and name in START}


def given_by(base: str | None, found: Fit) -> dict[str, tuple[float | None, str]]:
    """Return the values of a preset that were not fitted, each with its source."""
    untouched = Coefficients(bandwidth_share=1.0, mfu=1.0)
    given: dict[str, tuple[float | None, str]] = {}
    for name, value in found.coefficients:
        if name in found.free:
            continue
        if base is not None and value != getattr(untouched, name):
            given[name] = (value, f"preset {base}")
        elif name in {"bandwidth_share", "mfu"}:
            given[name] = (value, "not fitted: the peak")
    return given


def doubts(found: Fit, all_errors: ErrorRow, base: str | None = None, least: float = ENOUGH_PERCENT) -> Iterator[str]:
    """Yield warnings about a fit: values that the data does not determine, and large errors.

    Parameters
    ----------
    found : Fit
        The fit.
    all_errors : ErrorRow
        The errors over all fitted rows.
    base : str or None
        The preset of the values that were not fitted.
    least : float
        Mean absolute error in percent above which there is a warning.
    """
    loose = [name for name in found.free if name in found.not_identified]
    if loose:
        advice = "fit fewer values with --free, " + ("" if base else "give --base, ") + "or add more varied rows"
        which = "it" if len(loose) == 1 else "them"
        yield f"{_undetermined(loose, len(found.free))}; do not use {which} for other batches: {advice}"
    if all_errors.mape > least:
        yield (
            f"the mean error on the fitted rows is {_above(all_errors.mape, least)}: "
            "step-time model, model, GPU and server settings do not describe these measurements"
        )


def _undetermined(loose: Sequence[str], fitted: int) -> str:
    if fitted == 1:
        return f"the data does not determine the fitted value {loose[0]}"
    which = "none" if len(loose) == fitted else f"only {fitted - len(loose)}"
    return f"the data determines {which} of the {fitted} fitted values; not determined: {', '.join(loose)}"


def _above(percent: float, limit: float) -> str:
    """Return a percentage and the limit that it exceeds, with the decimals that show it."""
    for decimals in (1, 2):
        text = f"{percent:.{decimals}f}"
        if float(text) > limit:
            return f"{text} %, above {limit:g} %"
    return f"slightly above {limit:g} %"


def _base(base: str | None) -> Preset | None:
    return None if base is None else load_preset(base, Path())
