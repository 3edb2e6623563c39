"""The traffic of a scenario at another rate: the same pattern, faster or slower."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from simqueue.errors import InputError
from simqueue.experiment.demand import offered
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import is_random_run
from simqueue.settings import Settings
from simqueue.workload.arrivals.settings import (
    ArrivalProcessSettings,
    ConstantArrivalsSettings,
    PiecewiseArrivalsSettings,
)
from simqueue.workload.build import build_arrivals
from simqueue.workload.settings import WorkloadSettings

WARM_UP: Final = 0.2
"""Share of a run in a steady state that is warm-up, if the scenario gives no more."""

Workloads = Mapping[str | None, WorkloadSettings]


@dataclass(frozen=True, slots=True)
class ScaledTraffic:
    """The traffic of a scenario, whose rate can be changed.

    The same random numbers are used at every rate, so that the same requests come in the same order.

    Attributes
    ----------
    scenario : ResolvedScenario
    rate_rps : float
        The scenario's own.
    unit : str
        ``requests/s``, or ``sessions/s`` if all requests are those of sessions.
    steady : bool
        Whether the arrivals are the same at all times, so that runs can be as long as is needed and show a steady
        state. If not, as for a trace or a curve of a day, it is the scenario's own finite traffic that is scaled.
    random : bool
        Whether replications differ.
    """

    scenario: ResolvedScenario
    rate_rps: float
    unit: str
    steady: bool
    random: bool

    def at(self, rate_rps: float, requests: int) -> ResolvedScenario:
        """Return the scenario at a rate.

        Parameters
        ----------
        rate_rps : float
            Of all workloads together; each is scaled by the same factor.
        requests : int
            Per run, in a steady state: a fifth of the run, or `warmup_s` if it is longer, is warm-up. A longer warm-up
            makes the run longer.
        """
        factor = rate_rps / self.rate_rps
        if not self.steady:
            return _replaced(self.scenario, {name: _faster(self.scenario, one, factor) for name, one in self._all()})
        given_s = self.scenario.warmup_s
        number = requests if given_s == "auto" else max(requests, math.ceil(given_s * rate_rps / WARM_UP))
        ended = {name: self._ended(one, factor, number, rate_rps) for name, one in self._all()}
        changed = _replaced(self.scenario, ended)
        warmup_s = given_s if given_s == "auto" else max(WARM_UP * number / rate_rps, given_s)
        return changed.with_(horizon_s=None, warmup_s=warmup_s)

    def one_at_a_time(self, gap_s: float, requests: int) -> ResolvedScenario:
        """Return the scenario with requests that come evenly, `gap_s` seconds apart; only for a single workload."""
        arrivals = ConstantArrivalsSettings(process="constant", rate_rps=1 / gap_s)
        return self.scenario.with_(
            arrivals=arrivals, num_requests=requests, horizon_s=None, warmup_s=0.0, replications=1, precision=None
        )

    def _all(self) -> list[tuple[str | None, WorkloadSettings]]:
        return list(self.scenario.workloads.items())

    def _ended(self, one: WorkloadSettings, factor: float, number: int, rate_rps: float) -> WorkloadSettings:
        """Return a workload at another rate with another end; several end together."""
        single = len(self.scenario.workloads) == 1
        end = {"num_requests": number if single else None, "arrivals_for_s": None if single else number / rate_rps}
        return _faster(self.scenario, one, factor).model_copy(update=end)


def is_steady(scenario: ResolvedScenario) -> bool:
    """Return whether limits are about a steady state: no workload's requests, sessions or users change with time.

    Otherwise, as with a recorded trace or the course of a day, they are about the requests of the runs as they are.
    """
    return all(_lasts(scenario, one) for one in scenario.workloads.values())


def _lasts(scenario: ResolvedScenario, one: WorkloadSettings) -> bool:
    arrivals = one.arrivals if one.sessions is None else one.sessions.arrivals
    if arrivals is None:
        return one.trace is None and not one.requests
    return build_arrivals(arrivals, scenario.base_dir).gap_scv is not None


def scaled_traffic(scenario: ResolvedScenario) -> ScaledTraffic:
    """Return the traffic of a scenario, whose rate can be changed.

    Raises
    ------
    InputError
        If the traffic has no rate: a closed loop of users, listed requests, all requests at once, a ramp.
    """
    sources = [_source(scenario, name, one) for name, one in scenario.workloads.items()]
    rates = [rate for rate, _ in sources]
    units = {unit for _, unit in sources}
    if len(units) > 1:
        raise InputError("sessions and single requests have no common rate; give the capacity of one of them")
    apart = all(one.sessions is None for one in scenario.workloads.values())  # sessions are not made longer
    return ScaledTraffic(
        scenario, math.fsum(rates), units.pop(), apart and is_steady(scenario), is_random_run(scenario)
    )


def _source(scenario: ResolvedScenario, name: str | None, one: WorkloadSettings) -> tuple[float, str]:
    """Return rate and unit of a workload."""
    if one.sessions is not None:
        return _of_process(scenario, one.sessions.arrivals), "sessions/s"
    if one.arrivals is not None:
        return _of_process(scenario, one.arrivals), "requests/s"
    if one.trace is None:
        kind = "users wait for their answers" if one.users is not None else "listed requests have fixed times"
        raise InputError(f"{'workload' if name is None else name}: {kind}: there is no rate that could be changed")
    alone = replace(scenario, workloads={None: one})
    found = offered(alone)
    if found is None or found.all.rate_rps is None:
        raise InputError("the trace has too few requests, or they come all at once: it has no rate")
    return found.all.rate_rps, "requests/s"


def _of_process(scenario: ResolvedScenario, arrivals: ArrivalProcessSettings) -> float:
    process = build_arrivals(arrivals, scenario.base_dir)
    rate = process.mean_rate_rps
    if rate is None:
        kind = getattr(arrivals, "process", "")
        raise InputError(f"arrivals of process {kind} have no rate that could be changed", "workload", "arrivals")
    return rate


def _faster(scenario: ResolvedScenario, one: WorkloadSettings, factor: float) -> WorkloadSettings:
    """Return a workload whose requests come faster by a factor."""
    if one.trace is not None:
        scale = one.trace.rate_scale * factor
        return one.model_copy(update={"trace": one.trace.model_copy(update={"rate_scale": scale})})
    if one.sessions is not None:
        sessions = one.sessions.model_copy(update={"arrivals": _arrivals(scenario, one.sessions.arrivals, factor)})
        return one.model_copy(update={"sessions": sessions})
    if one.arrivals is None:
        return one
    update: dict[str, Any] = {"arrivals": _arrivals(scenario, one.arrivals, factor)}
    process = build_arrivals(one.arrivals, scenario.base_dir)
    if process.gap_scv is None and one.num_requests is not None:  # the same part of the course
        update["num_requests"] = max(1, round(one.num_requests * factor))
    return one.model_copy(update=update)


def _arrivals(scenario: ResolvedScenario, arrivals: ArrivalProcessSettings, factor: float) -> ArrivalProcessSettings:
    if isinstance(arrivals, PiecewiseArrivalsSettings):
        pieces = [piece.model_copy(update={"rate_rps": piece.rate_rps * factor}) for piece in arrivals.pieces]
        return arrivals.model_copy(update={"pieces": tuple(pieces)})
    return arrivals.with_rate(_of_process(scenario, arrivals) * factor)


def _replaced(scenario: ResolvedScenario, workloads: Workloads) -> ResolvedScenario:
    """Return a scenario with other workloads, also in its values."""
    single = workloads.get(None)
    plain = (
        {"workload": _plain(single)}
        if single is not None
        else {"workloads": {str(name): _plain(one) for name, one in workloads.items()}}
    )
    return replace(scenario, workloads=dict(workloads), values={**scenario.values, **plain})


def _plain(value: Settings) -> dict[str, Any]:
    found: dict[str, Any] = value.model_dump(mode="json", by_alias=True)
    return found
