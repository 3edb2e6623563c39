"""The warm-up: where each run's steady window begins, and where it ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simqueue.experiment.replication import Replication
from simqueue.experiment.run_loads import RunLoads
from simqueue.results.classes import ALL_CLASSES, RequestClasses
from simqueue.results.metrics import Floats
from simqueue.results.policyrun import PolicyRun
from simqueue.results.signs import stay
from simqueue.results.steadiness import OfferedLoad
from simqueue.results.window import Requests, entries, last_entry_s, steady_window
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.simulation.recording import Recording
from simqueue.statistics.verdict import majority
from simqueue.statistics.warmup import Truncation, averaged_series, mser5
from simqueue.workload.settings import WorkloadSettings

_OF_ENTRIES = ("arrival_s", "attempt", "session", "client")
"""The columns that say which requests keep the traffic up."""
_FILLS = 3
"""A system that fills up at the rate at which it empties is then filled to 95 %."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What is cut at the start of each run.

    Attributes
    ----------
    until_s : float
        A time that was given; 0 measures whole runs.
    requests : int or None
        A number of requests that was found. Each run is cut where its own request of this number arrives, so that
        policies are compared on the same requests, and so that replications with a late start do not cut the others.
        At 0 the window begins with the first request.
    notes : tuple of str
        Warnings.
    """

    until_s: float = 0.0
    requests: int | None = None
    notes: tuple[str, ...] = ()

    def start_s(self, recording: Recording) -> float | None:
        """Return when the window of a run begins; None if the whole run is measured. At most half of it is cut."""
        if self.requests is None:
            return self.until_s or None
        arrival_s = recording.requests["arrival_s"]
        return float(arrival_s[min(self.requests, len(arrival_s) // 2)]) if len(arrival_s) else None


def warm_up(scenario: ResolvedScenario, made: Sequence[Replication], loads: RunLoads) -> WarmUp:
    """Return the warm-up that a scenario gives, or that MSER-5 finds.

    With ``auto``, MSER-5 is applied to the TTFT by order of arrival, averaged over replications, for each policy. At
    least three times as many requests are cut as are in the system on average: TTFT does not show how the system fills
    up, and until it is full fewer leave than arrive. The largest number is cut for all policies. Policies whose queue
    grows throughout the run have no steady part and are not considered. If the number of replications follows from a
    precision, the first ones decide, because the warm-up must not change with their number.

    Parameters
    ----------
    scenario : ResolvedScenario
    made : sequence of Replication
    loads : RunLoads
        Asked only if a policy looks overloaded.
    """
    made = made if scenario.precision is None else made[: scenario.precision.min_replications]
    if scenario.warmup_s != "auto":
        return WarmUp(until_s=scenario.warmup_s)
    names = scenario.policy_names
    stable = [
        name for name in names if not _grows(made, name, OfferedLoad()) or not _grows(made, name, loads.offered[name])
    ]
    if not stable:
        return WarmUp(notes=("warm-up auto: every policy is overloaded and has no steady part; nothing is cut",))
    cuts = {name: mser5(averaged_series(_ttft_series(made, name))) for name in stable}
    filling = max(_FILLS * _mean_number(made, name) for name in stable)
    requests = max(math.ceil(filling), *(found.cut for found in cuts.values()))
    notes = tuple(_inconclusive(name, cut, requests) for name, cut in cuts.items() if cut.n and not cut.conclusive)
    return WarmUp(requests=requests, notes=notes)


def with_windows(scenario: ResolvedScenario, warm: WarmUp, made: Sequence[Replication]) -> list[Replication]:
    """Return the replications with the steady window of each run; without a warm-up they have none."""
    return [replace(one, runs=tuple(with_window(scenario, warm, run) for run in one.runs)) for one in made]


def with_window(scenario: ResolvedScenario, warm: WarmUp, run: PolicyRun) -> PolicyRun:
    """Return a run with its steady window; without a warm-up it has none."""
    start_s = warm.start_s(run.recording)
    if start_s is None:
        return run
    return run.measured(steady_window(run.recording, start_s, _ends_s(scenario, run.recording)))


def _ends_s(scenario: ResolvedScenario, recording: Recording) -> dict[str, float]:
    """Return when each workload ends, by name; those of which nothing arrived are left out."""
    requests = recording.requests
    classes = RequestClasses(requests["request_class"])
    found = {}
    for name, workload in scenario.workloads.items():
        inside = classes.mask(ALL_CLASSES if name is None else name)
        if inside is not None and inside.any():
            own = {key: requests[key][inside] for key in _OF_ENTRIES if key in requests}
            found[name or ""] = _end_s(workload, own)
    return found


def _end_s(workload: WorkloadSettings, requests: Requests) -> float:
    """Return until when requests of a workload could arrive, infinity if the horizon ended that."""
    planned, came, last_s = _number(workload), int(entries(requests).sum()), last_entry_s(requests)
    if planned and came >= planned:
        return last_s
    return max(last_s, workload.arrivals_for_s or (math.inf if planned else 0.0))


def _number(workload: WorkloadSettings) -> int | None:
    """Return how many requests, or sessions, a workload has; None if only time ends it, or the end of a trace."""
    return workload.sessions.num_sessions if workload.sessions is not None else workload.num_requests


def _ttft_series(made: Sequence[Replication], policy: str) -> list[Floats]:
    recordings = [run.recording for replication in made for run in replication.runs if run.policy == policy]
    return [recording.requests["first_token_s"] - recording.requests["arrival_s"] for recording in recordings]


def _mean_number(made: Sequence[Replication], policy: str) -> float:
    """Return how many requests of a policy are in the system on average, up to the last arrival."""
    inside_s = time_s = 0.0
    for replication in made:
        for run in replication.runs:
            arrival_s, leave_s = stay(run.recording)
            if run.policy == policy and len(arrival_s):
                inside_s += float(np.sum(np.minimum(leave_s, arrival_s[-1]) - arrival_s))
                time_s += float(arrival_s[-1] - arrival_s[0])
    return inside_s / time_s if time_s else 0.0


def _grows(made: Sequence[Replication], policy: str, load: OfferedLoad) -> bool:
    """Whether a policy has no steady state in more than half of its replications."""
    runs = [run for replication in made for run in replication.runs if run.policy == policy]
    return majority([run.signs.unsteady(load.law) for run in runs]) is True


def _inconclusive(policy: str, cut: Truncation, requests: int) -> str:
    return (
        f"{policy}: warm-up auto found no steady part (MSER-5 over {cut.n} requests); {min(requests, cut.n // 2)} "
        "requests are cut; use more requests, or give warmup_s"
    )
