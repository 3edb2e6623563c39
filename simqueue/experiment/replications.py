"""Independent replications: how many, on which cores, and where their steady part begins.

A replication has traffic of its own, which every policy sees: so policies are compared on the same luck (common random
numbers). What a replication gives depends on scenario, seed and its number alone, never on who computes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simqueue.errors import InputError
from simqueue.experiment.build import build_all
from simqueue.experiment.offered_load import server
from simqueue.request import Request
from simqueue.results.result import PolicyRun
from simqueue.results.steadiness import run_trend
from simqueue.results.summary import ALL_CLASSES, summarize
from simqueue.scenario.precision import PrecisionSettings
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import make_traffic
from simqueue.simulation import RunOptions, Simulation
from simqueue.simulation.columns import Sinks
from simqueue.simulation.options import NEVER_S
from simqueue.statistics.stopping import look_ahead, precise_at
from simqueue.statistics.warmup import Truncation, averaged_series, mser5
from simqueue.theory.capacity import Server

Progress = Callable[[str, int, int], None]
"""Called with the policy's name, how many requests have left and how many there are; with several replications
with ``replications``, how many are done and how many there will be."""

_WORTH_STARTING_WORKERS_S = 2.0
"""Expected seconds of work below which starting worker processes costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Replication:
    """One replication of every policy.

    Attributes
    ----------
    number : int
    runs : tuple of PolicyRun
        In the scenario's order of policies.
    requests : tuple of Request
        The traffic; empty if it depends on the answers, or if another process made the replication.
    servers : mapping of str to Server or None
        Each policy in the terms of the capacity law; empty if another process made the replication.
    notes : tuple of str
        Notes of the workload, such as rows that were dropped.
    """

    number: int
    runs: tuple[PolicyRun, ...]
    requests: tuple[Request, ...]
    servers: Mapping[str, Server | None]
    notes: tuple[str, ...]


def replicate(
    scenario: ResolvedScenario,
    number: int,
    *,
    check: bool,
    progress: Progress | None = None,
    stream_to: Path | None = None,
) -> Replication:
    """Run every policy once, on the traffic of one replication.

    Parameters
    ----------
    scenario : Scenario
    number : int
        Which replication, from 0; it selects the random streams.
    check : bool
        Verify the invariants after every step.
    progress : callable, optional
    stream_to : Path, optional
        Folder in which each policy's tables are written while they are made, instead of being kept.
    """
    built = build_all(scenario)
    servers = {policy.name: server(built[policy.name]) for policy in scenario.policies}
    traffic = make_traffic(scenario, number, kept=stream_to is None)
    runs = []
    for policy in scenario.policies:
        name, step_time = policy.name, policy.step_time
        on_end = _reporter(progress, name, traffic.expected_requests)
        played = options(scenario, check=check)
        sinks = _sinks(stream_to, name)
        simulation = Simulation(traffic, built[name], step_time, played, on_end, sinks=sinks)
        recording = simulation.run()
        outside = step_time.warnings(recording.steps)
        runs.append(PolicyRun(name, number, replace(recording, warnings=(*recording.warnings, *outside))))
    # what is read from a file piece by piece is not kept, and what depends on the answers is not known beforehand
    fixed = isinstance(traffic.requests, list) and not traffic.session_groups
    return Replication(number, tuple(runs), tuple(traffic.requests) if fixed else (), servers, traffic.notes)


def _sinks(stream_to: Path | None, policy: str) -> Sinks | None:
    if stream_to is None:
        return None
    from simqueue.results.streaming import streamed_to  # noqa: PLC0415 - slow to load and seldom wanted

    return streamed_to(stream_to / policy)


def all_replications(
    scenario: ResolvedScenario,
    *,
    check: bool,
    progress: Progress | None = None,
    workers: int | None = None,
    stream_to: Path | None = None,
) -> list[Replication]:
    """Run as many replications as the scenario asks for.

    Parameters
    ----------
    scenario : Scenario
    check : bool
    progress : callable, optional
    workers : int, optional
        Processes; by default as many as there are cores, and one where the work is short. The results do not depend
        on it.
    stream_to : Path, optional
        As in `replicate`; for one replication.

    Raises
    ------
    InputError
        If a metric that is to become precise is undefined, or several replications are to be streamed.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: must be at least 1")
    if scenario.replications == 1 and scenario.precision is None:
        return [replicate(scenario, 0, check=check, progress=progress, stream_to=stream_to)]
    if stream_to is not None:
        raise InputError(f"streaming to {stream_to}: goes with one replication; set replications: 1 and no precision")
    team = _Team(scenario, check, progress, workers)
    if scenario.precision is None:
        return team.up_to(scenario.replications)
    return _until_precise(team, scenario, scenario.precision)


def warm_up(scenario: ResolvedScenario, made: Sequence[Replication]) -> tuple[float, tuple[str, ...]]:
    """Return when the steady part of a scenario begins, in seconds, and what there is to say about it.

    With ``auto``, MSER-5 looks at TTFT by order of arrival, averaged over replications, policy by policy. The latest
    cut holds for all policies, so that they are compared on the same requests; policies whose queue grows to the end
    have no steady part and are not asked.
    """
    if scenario.warmup_s != "auto":
        return scenario.warmup_s, ()
    stable = [name for name in scenario.policy_names if not _grows(made, name)]
    if not stable:
        return 0.0, ("warm-up auto: every policy is overloaded, so nothing settles and nothing is cut",)
    cuts = {name: mser5(averaged_series(_ttft_series(made, name))) for name in stable}
    notes = [_unsettled(name, cut) for name, cut in cuts.items() if not cut.conclusive]
    cut = max(found.cut for found in cuts.values())
    if cut == 0:
        return 0.0, tuple(notes)
    arrivals = [run.recording.requests["arrival_s"] for replication in made for run in replication.runs]
    return max(float(arrival_s[min(cut, len(arrival_s) - 1)]) for arrival_s in arrivals), tuple(notes)


def options(scenario: ResolvedScenario, *, check: bool) -> RunOptions:
    """Return how a scenario's runs are played."""
    resolution_s = scenario.clock_resolution_s
    return RunOptions(
        horizon_s=NEVER_S if scenario.horizon_s is None else scenario.horizon_s,
        fast=scenario.fast,
        check=check,
        ticks_per_s=None if resolution_s is None else round(1 / resolution_s),
        max_queued_requests=scenario.max_queued_requests,
    )


class _Team:
    """Replications in order, made by this process or by several."""

    def __init__(self, scenario: ResolvedScenario, check: bool, progress: Progress | None, workers: int | None) -> None:
        self._scenario, self._check, self._progress, self._workers = scenario, check, progress, workers
        self._made: list[Replication] = []
        self._seconds_each = 0.0

    def up_to(self, count: int) -> list[Replication]:
        """Return the first `count` replications; those made before are not made again."""
        if not self._made:
            started = time.perf_counter()
            self._made.append(replicate(self._scenario, 0, check=self._check))
            self._seconds_each = time.perf_counter() - started
        missing = range(len(self._made), count)
        workers = self._workers_for(len(missing))
        if workers == 1:
            for number in missing:
                self._tell(count)
                self._made.append(replicate(self._scenario, number, check=self._check))
        else:
            self._share(missing, workers, count)
        self._tell(count)
        return self._made[:count]

    def _workers_for(self, count: int) -> int:
        if self._workers is not None:
            return max(1, min(self._workers, count))
        if count * self._seconds_each < _WORTH_STARTING_WORKERS_S:
            return 1
        return max(1, min(os.cpu_count() or 1, count))

    def _share(self, numbers: Sequence[int], workers: int, total: int) -> None:
        from joblib import Parallel, delayed  # noqa: PLC0415 - slow to load and not always wanted

        tasks = (delayed(_elsewhere)(self._scenario, number, self._check) for number in numbers)
        for replication in Parallel(n_jobs=workers, return_as="generator", max_nbytes=None)(tasks):
            self._made.append(replication)
            self._tell(total)

    def _tell(self, total: int) -> None:
        if self._progress is not None:
            self._progress("replications", len(self._made), total)


def _elsewhere(scenario: ResolvedScenario, number: int, check: bool) -> Replication:
    """Run one replication in a worker process, and send back no more than is needed."""
    made = replicate(scenario, number, check=check)
    return replace(made, requests=(), servers={})


def _until_precise(team: _Team, scenario: ResolvedScenario, wanted: PrecisionSettings) -> list[Replication]:
    """Replicate until every policy's mean is precise and stays so for the look-ahead, or there are too many."""
    start = min(wanted.max_replications, wanted.min_replications + look_ahead(wanted.min_replications))
    made = team.up_to(start)
    # the warm-up is fixed by the first replications: it must not move while their number is being decided
    warmup_s, _ = warm_up(scenario, made[: wanted.min_replications])
    values: dict[str, list[float]] = {name: [] for name in scenario.policy_names}
    while True:
        for replication in made[len(next(iter(values.values()))) :]:
            for run in replication.runs:
                values[run.policy].append(_metric(scenario, run, wanted.metric, warmup_s))
        firsts = [
            precise_at(found, wanted.relative, wanted.confidence, least=wanted.min_replications)
            for found in values.values()
        ]
        known = [first for first in firsts if first is not None]
        if len(known) == len(firsts):
            return made[: min(wanted.max_replications, max(first + look_ahead(first) for first in known))]
        if len(made) >= wanted.max_replications:
            return made
        made = team.up_to(min(wanted.max_replications, len(made) + max(5, len(made) // 2)))


def _metric(scenario: ResolvedScenario, run: PolicyRun, metric: str, warmup_s: float) -> float:
    rows = summarize(run.policy, run.replication, run.recording, scenario.slo, warmup_s, scenario.class_slos)
    value = next(row[metric] for row in rows if row["request_class"] == ALL_CLASSES)
    if not isinstance(value, int | float):
        raise InputError(
            f"precision.metric = {metric}: undefined for policy {run.policy} in replication {run.replication}"
        )
    return float(value)


def precision_note(scenario: ResolvedScenario, made: Sequence[Replication]) -> tuple[str, ...]:
    """Return a line where the wanted precision was not reached."""
    wanted = scenario.precision
    if wanted is None:
        return ()
    warmup_s, _ = warm_up(scenario, made[: wanted.min_replications])
    missed = []
    for name in scenario.policy_names:
        runs = [run for replication in made for run in replication.runs if run.policy == name]
        values = [_metric(scenario, run, wanted.metric, warmup_s) for run in runs]
        if precise_at(values, wanted.relative, wanted.confidence, least=wanted.min_replications) is None:
            missed.append(name)
    if not missed:
        return ()
    return (
        f"not enough runs: after {len(made)} replications {wanted.metric} of {', '.join(missed)} is not yet known to "
        f"{100 * wanted.relative:g} %; raise precision.max_replications or make the runs longer",
    )


def _ttft_series(made: Sequence[Replication], policy: str) -> list[Any]:
    recordings = [run.recording for replication in made for run in replication.runs if run.policy == policy]
    return [recording.requests["first_token_s"] - recording.requests["arrival_s"] for recording in recordings]


def _grows(made: Sequence[Replication], policy: str) -> bool:
    """Whether the queue of a policy grew in most of its replications."""
    runs = [run for replication in made for run in replication.runs if run.policy == policy]
    grew = [found.rising for run in runs if (found := run_trend(run.recording)) is not None]
    return 2 * sum(grew) > len(runs)


def _unsettled(policy: str, cut: Truncation) -> str:
    return (
        f"{policy}: warm-up auto found no settled part (MSER-5 over {cut.n} requests; {cut.cut} are cut); "
        "let more requests arrive, or give warmup_s"
    )


def _reporter(progress: Progress | None, policy: str, total: int) -> Callable[[int], None] | None:
    if progress is None:
        return None
    step = max(1, total // 200)

    def on_end(left: int) -> None:
        if left % step == 0 or left == total:
            progress(policy, left, total)

    return on_end
