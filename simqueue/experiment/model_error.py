"""The published error of the step times of a policy, as a pair of factors at which an answer can be asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simqueue.experiment.fleets import systems
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.scaled import unscaled

if TYPE_CHECKING:
    from simqueue.results.result import Result
    from simqueue.scenario.resolved import ResolvedPolicy

NO_PRESET = "its step times are not those of a preset that was fitted to measurements"
_REGIME = "model_error_regime"
_PERCENT = "model_error_pct"


@dataclass(frozen=True, slots=True)
class PublishedError:
    """How far the step times of a policy can be off.

    Attributes
    ----------
    share : float or None
        Median absolute error as a share of the step times, such as 0.092; None: none is published.
    reason : str
        How the preset is used, such as "other batches"; or why no error is published.
    """

    share: float | None
    reason: str

    @property
    def factors(self) -> tuple[float, float] | None:
        """The `step_time_factor` at both ends: (1 - share, 1 + share); None without a share."""
        return None if self.share is None else (1 - self.share, 1 + self.share)


def published_error(row: Mapping[str, Any]) -> PublishedError:
    """Return the published error of the step times of a policy.

    Parameters
    ----------
    row : mapping
        A row of the policy in the summary of a run: which error applies depends on the batches that occurred.
    """
    regime, percent = row.get(_REGIME), row.get(_PERCENT)
    if regime is None:
        return PublishedError(None, NO_PRESET)
    if percent is None:
        return PublishedError(None, f"nothing like it was measured: {regime}")
    if not 0 < percent < 100:
        return PublishedError(None, f"the published error is {percent:g} %, which gives no two factors > 0")
    return PublishedError(percent / 100, str(regime))


def published_errors(result: Result) -> dict[str, PublishedError]:
    """Return the published error of each policy of a result."""
    return {name: published_error(result.rows_of(name)[0]) for name in result.policies}


def error_source(policy: ResolvedPolicy) -> tuple[str, ...]:
    """Return what the error of a policy's step times comes from: presets, each with the GPUs that it is used for.

    The step times of two policies with the same source are wrong by the same factor, in the same direction. Empty: some
    of its step times are of no preset.
    """
    found = []
    for _, system in systems(policy):
        measured = unscaled(system.step_time)
        if not isinstance(measured, CalibratedStepTime) or measured.preset is None:
            return ()
        gpu = "" if system.gpu is None else system.gpu.name
        found.append(f"{measured.preset.name} on {system.tensor_parallel} x {gpu}")
    return tuple(sorted(dict.fromkeys(found)))
