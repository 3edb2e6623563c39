"""How far step times of a preset are from measurements that it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from simqueue.datafiles.yamlfile import read_yaml
from simqueue.steptime.base import StepTime
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.preset import FitError, Preset
from simqueue.steptime.validity import Regime, step_notes

if TYPE_CHECKING:
    from simqueue.steptime.validity import Columns

_HELD_OUT: Final = "held out"
_TTFT: Final = "TTFT"


@dataclass(frozen=True, slots=True)
class ModelError:
    """The expected error of the step times of a run.

    Attributes
    ----------
    percent : float or None
        Median absolute error of TPOT, or of steps, on rows that were not fitted; None: nothing like it was measured.
    regime : Regime
        Where the preset is used, compared with its data.
    """

    percent: float | None
    regime: Regime


def model_error(step_time: StepTime, steps: Columns) -> ModelError | None:
    """Return the error of a run's step times by what its preset was fitted to; None without a preset that was fitted.

    Parameters
    ----------
    step_time : StepTime
    steps : mapping of str to array
        As in `Recording.steps`.
    """
    if not isinstance(step_time, CalibratedStepTime) or step_time.preset is None:
        return None
    preset = step_time.preset
    regimes = [note.regime for note in (*step_time.notes, *step_notes(preset, steps))]
    if preset.card.kernels:
        regimes.append("kernels alone")
    if not regimes:
        return ModelError(_in_range(preset), "in range")
    known = [(measured_errors().get(regime), regime) for regime in regimes]
    percent, regime = max(known, key=lambda one: one[0] or 0.0)
    return ModelError(percent, regime)


@cache
def measured_errors() -> dict[str, float]:
    """Return the median absolute error of TPOT in percent outside the range of presets, by regime.

    The file is written by ``python -m studies.fidelity --beyond``, from rows that the presets were not fitted to.
    """
    found: Any = read_yaml(files("simqueue.steptime") / "beyond.yaml")
    return {one["regime"]: float(one["median_percent"]) for one in found["errors"]}


def _in_range(preset: Preset) -> float | None:
    held_out = [one for one in preset.card.errors if _HELD_OUT in one.data and _TTFT not in one.data]
    chosen: FitError | None = next(iter(held_out or preset.card.errors), None)
    if chosen is None:
        return None
    return chosen.mape_percent if chosen.median_percent is None else chosen.median_percent
