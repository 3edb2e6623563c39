"""Notes on asynchronous scheduling: what it costs is simulated, what it gains depends on the step-time model.

A server that plans the next step while one runs sees arrivals and free blocks a step later: that is its cost, and
follows from the schedule. Its gain is that the GPU does not wait for the CPU. How much of the CPU time of a step is
hidden has been measured by no data of the presets: they come from servers without asynchronous scheduling, from such
with it, or do not say. So nothing is subtracted, and the run says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.scenario.resolved import ResolvedPolicy
from simqueue.steptime import StepTime
from simqueue.steptime.calibrated import CalibratedStepTime
from simqueue.steptime.scaled import factor_of, unscaled

_COST = "its cost is modelled, its gain is not"


def hidden_time_notes(policies: Sequence[ResolvedPolicy]) -> list[str]:
    """Return one line for each reason for which steps of engines with and without it cannot be compared."""
    found: dict[str, list[str]] = {}
    for policy in policies:
        if policy.engine is None:
            continue
        is_async = bool(policy.engine.values.get("async_scheduling"))
        note = _gain_is_missing(policy.step_time) if is_async else _gain_is_included(policy.step_time)
        if note is not None:
            found.setdefault(note, []).append(policy.name)
    return [f"asynchronous scheduling: {note} ({', '.join(names)})" for note, names in found.items()]


def _gain_is_missing(step_time: StepTime) -> str | None:
    """Return why an engine that plans ahead gains nothing; None if the gain is part of the measured steps."""
    if _measured_ahead(step_time):
        return None
    cpu_s, measured = 0.0, unscaled(step_time)
    if isinstance(measured, CalibratedStepTime):
        cpu_s = factor_of(step_time) * (measured.rates.step_s + measured.rates.host_s)
    if not cpu_s:
        return f"this step time has no CPU part that it could hide; {_COST}"
    return f"it is not known how much of the {1000 * cpu_s:.3g} ms of CPU time per step it hides; {_COST}"


def _gain_is_included(step_time: StepTime) -> str | None:
    """Return why an engine that does not plan ahead is too fast; None if it is not."""
    if not _measured_ahead(step_time):
        return None
    return "this step time was measured with it; without it, CPU time that it hides would come on top"


def _measured_ahead(step_time: StepTime) -> bool:
    """Whether the steps were measured on a server that plans ahead."""
    measured = unscaled(step_time)
    preset = measured.preset if isinstance(measured, CalibratedStepTime) else None
    return preset is not None and preset.card.async_scheduling is True
