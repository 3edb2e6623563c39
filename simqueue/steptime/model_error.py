"""How far step times of a preset are from measurements that it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from simqueue.datafiles.yamlfile import read_yaml
from simqueue.steptime.base import StepTime
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.preset import Card, FitError, Preset
from simqueue.steptime.scaled import unscaled
from simqueue.steptime.validity import Regime, step_notes

if TYPE_CHECKING:
    from simqueue.steptime.validity import Columns

_HELD_OUT: Final = "held out"
_TTFT: Final = "TTFT"
_ANY: Final = "as measured"
"""Engine on the cards of presets that users fit."""


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


def model_error(step_time: StepTime, steps: Columns, engine: str | None = None) -> ModelError | None:
    """Return the error of a run's step times by what its preset was fitted to; None without a preset that was fitted.

    It is never less than that within the range of the preset.

    Parameters
    ----------
    step_time : StepTime
    steps : mapping of str to array
        As in `Recording.steps`.
    engine : str, optional
        Name of the engine whose rules the policy has; by default it is no engine.
    """
    measured = unscaled(step_time)
    if not isinstance(measured, CalibratedStepTime) or measured.preset is None:
        return None
    preset = measured.preset
    regimes = [note.regime for note in (*measured.notes, *step_notes(preset, steps)) if note.regime != "in range"]
    if preset.card.kernels:
        regimes.append("kernels alone")
    if engine is not None and not is_of(preset.card, engine):
        regimes.append("another engine")
    if "values of your own" in regimes:
        return ModelError(None, "values of your own")
    own = _in_range(preset)
    if not regimes:
        return ModelError(own, "in range")
    known = [(measured_errors().get(regime), regime) for regime in regimes]
    percent, regime = max(known, key=lambda one: one[0] or 0.0)
    return ModelError(max(filter(None, (percent, own)), default=None), regime)


def is_of(card: Card, engine: str) -> bool:
    """Return whether an engine of this name was measured; kernels and what names no engine count as any."""
    return card.kernels or card.engine is None or card.engine == _ANY or card.engine.lower().startswith(engine)


@cache
def measured_errors() -> dict[str, float]:
    """Return the median absolute error of TPOT in percent outside the range of presets, by regime.

    The file is written by ``python -m studies.fidelity --beyond``, from rows that the presets were not fitted to.
    """
    found: Any = read_yaml(files("simqueue.steptime") / "beyond.yaml")
    return {one["regime"]: float(one["median_percent"]) for one in found["errors"]}


def _in_range(preset: Preset) -> float | None:
    """Return the median error of TPOT, or of steps: of rows held out, else of those that were fitted."""
    of_tokens = [one for one in preset.card.errors if _TTFT not in one.data]
    held_out = [one for one in of_tokens if _HELD_OUT in one.data]
    single = [one for one in of_tokens if one.data != "all"]
    chosen: FitError | None = next(iter(held_out or single), None)
    if chosen is None:
        return None
    return chosen.mape_percent if chosen.median_percent is None else chosen.median_percent
