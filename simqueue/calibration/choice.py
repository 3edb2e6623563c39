"""Which values a set of measurements can tell, and where the others come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from simqueue.calibration.case import Case, StepCase
from simqueue.calibration.fit import START, Fit
from simqueue.steptime import Coefficients
from simqueue.steptime.preset import Preset, load_preset

SERVED: Final = ("mfu", "seq_us", "step_ms")
"""What means of served runs can tell: time by prompt token, by sequence, and by step."""


def free_for(cases: Sequence[Case], names: Sequence[str] | None) -> list[str]:
    """Return the values to fit: those named, else those that rows of these kinds depend on."""
    if names is not None:
        return list(names)
    steps = [case for case in cases if isinstance(case, StepCase)]
    return list(_for_steps(steps)) if steps else list(SERVED)


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
    if any(case.tensor_parallel > 1 for case in cases):
        yield from ("link_share", "allreduce_us")


def held_fixed(base: str | None, free: Sequence[str]) -> dict[str, float | None]:
    """Return the values that are not fitted: those of the base preset, else none."""
    preset = _base(base)
    if preset is None:
        return {}
    return {name: value for name, value in preset.coefficients if name not in free}


def start_from(base: str | None) -> Mapping[str, float]:
    """Return where the search starts: at the base preset's values."""
    preset = _base(base)
    return {} if preset is None else {name: value for name, value in preset.coefficients if value and name in START}


def given_by(base: str | None, found: Fit) -> dict[str, tuple[float | None, str]]:
    """Return the values that a preset states without having fitted them, each with its source."""
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


def _base(base: str | None) -> Preset | None:
    return None if base is None else load_preset(base, Path())
