"""What the runs of a scenario are told about the load of their policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Final

from simqueue.experiment.fleets import steps_of_group, systems
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.experiment.replication import Replication
from simqueue.results.signs import open_arrivals_s
from simqueue.results.steadiness import OfferedLoad
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.simulation.recording import Recording
from simqueue.statistics.rush import rush_share
from simqueue.steptime.model_error import ModelError, model_error
from simqueue.workload.arrivals.course import rate_course
from simqueue.workload.build import build_arrivals

_LEAST_OBSERVED: Final = 500
"""With fewer recorded arrivals, a rate over time is mostly noise."""


class RunLoads:
    """The loads of the policies in the runs of a scenario, computed when they are first asked for.

    Parameters
    ----------
    scenario : ResolvedScenario
    first : Replication
        Replication 0.
    known : mapping of str to PolicyLoad, optional
        The load of each policy, if the caller has it.
    """

    def __init__(
        self, scenario: ResolvedScenario, first: Replication, known: Mapping[str, PolicyLoad] | None = None
    ) -> None:
        self._scenario, self._first, self._known = scenario, first, known

    @cached_property
    def offered(self) -> dict[str, OfferedLoad]:
        """The load of each policy."""
        recordings, scenario = self._first.recordings, self._scenario
        loads = {name: _of_runs(scenario, found, recordings[name]) for name, found in self._found.items()}
        return {name: replace(load, model_error=self._model_error(name)) for name, load in loads.items()}

    def _model_error(self, name: str) -> ModelError | None:
        recording = self._first.recordings[name]
        errors = []
        for group, system in systems(self._scenario.policy(name)):
            engine = None if system.engine is None else system.scheduler
            errors.append(model_error(system.step_time, steps_of_group(recording, group), engine))
        known = [error for error in errors if error is not None]
        return max(known, key=lambda error: error.percent or 0.0) if len(known) == len(errors) else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each load that is missing or not sure."""
        at_times = {name: bool(load.overloaded_share) for name, load in self.offered.items()}
        found = (one.warnings(name, exceeded=at_times[name]) for name, one in self._found.items())
        return tuple(chain.from_iterable(found))

    @cached_property
    def _found(self) -> Mapping[str, PolicyLoad]:
        first = self._first
        if self._known is not None:
            return self._known
        return policy_loads(self._scenario, first.requests, first.policies or None, first.recordings, estimates=False)


def _of_runs(scenario: ResolvedScenario, found: PolicyLoad, recording: Recording) -> OfferedLoad:
    if found.capacity is None:
        return OfferedLoad(found.load, None)
    capacity_rps = found.capacity.max_rate_rps
    share, varies = _overloaded_share(scenario, found.load, capacity_rps, recording)
    return OfferedLoad(found.load, found.capacity.binding, bool(found.doubt), capacity_rps, share, varies)


def _overloaded_share(
    scenario: ResolvedScenario, load: float | None, capacity_rps: float, recording: Recording
) -> tuple[float | None, bool]:
    """Return the share of time in which more arrives than the capacity, None if unknown, and whether the rate varies.

    It follows from the rate of the arrival process; for traces and several workloads, from what arrived.
    """
    arrival_s = open_arrivals_s(recording)
    workload = scenario.workload
    if not len(arrival_s) or arrival_s.max() <= 0:
        return None, False
    if workload is None or workload.arrivals is None:
        servable_s = open_arrivals_s(recording, servable=True)
        if len(servable_s) < _LEAST_OBSERVED or load is None:
            return None, False
        share = rush_share(servable_s, capacity_rps)
        return share, 0 < share < 1
    process = build_arrivals(workload.arrivals, scenario.base_dir)
    course = rate_course(process, float(arrival_s.max()), len(arrival_s))
    if course is None:
        return None, False
    # A load counts admitted requests only, the rate of a process all of them.
    mean_rps = process.mean_rate_rps
    return course.share_above(capacity_rps if load is None or mean_rps is None else mean_rps / load), course.varies
