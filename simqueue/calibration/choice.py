"""Which values a set of measurements can tell, and where the others come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from simqueue.calibration.case import Case, StepCase
from simqueue.calibration.errors import ErrorRow
from simqueue.calibration.fit import START, Fit
from simqueue.steptime import Coefficients
from simqueue.steptime.preset import Preset, load_preset

ENOUGH_PERCENT: Final = 10.0
"""Mean absolute error on its own rows above which a fit is doubted; the presets of the package are below it."""

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


def doubts(found: Fit, all_errors: ErrorRow, least: float = ENOUGH_PERCENT) -> Iterator[str]:
    """Yield what speaks against using a fit as a preset: values that the data does not decide, large errors.

    Parameters
    ----------
    found : Fit
    all_errors : ErrorRow
        The errors over all rows that were fitted.
    least : float
        Mean absolute error, in percent, above which a fit is doubted.
    """
    loose = [name for name in found.free if name in found.not_identified]
    if loose:
        which = "none" if len(loose) == len(found.free) else f"only {len(found.free) - len(loose)}"
        yield (
            f"the data decides {which} of the {len(found.free)} fitted values; not {', '.join(loose)}: "
            "outside the rows measured they mean nothing; fewer --free, or others from a --base, or more varied rows"
        )
    if all_errors.mape > least:
        yield (
            f"the mean error on the rows it was fitted to is {all_errors.mape:.1f} %, above {least:g} %: "
            "this form of step time, model, GPU and server settings do not describe these measurements"
        )


def _base(base: str | None) -> Preset | None:
    return None if base is None else load_preset(base, Path())
