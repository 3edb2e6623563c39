"""One replication: every policy of a scenario, run on the same requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from simqueue.execution import Executor, ThisProcess
from simqueue.experiment.build import build_all
from simqueue.experiment.fleets import parts, rules, steps_of_group, systems
from simqueue.experiment.replicas_apart import played_apart
from simqueue.request import Request
from simqueue.results.policyrun import PolicyRun
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.scenario.resolved_fleet import ResolvedFleet
from simqueue.scenario.traffic import make_traffic
from simqueue.schedulers import Policy
from simqueue.simulation import RunOptions, Simulation
from simqueue.simulation.columns import Sinks
from simqueue.simulation.options import NEVER_S
from simqueue.simulation.recording import Recording
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.traffic import Traffic

if TYPE_CHECKING:
    from simqueue.results.streaming import Stream

_HERE: Final = ThisProcess()
Progress = Callable[[str, int, int], None]
"""Called with the name of the policy, the number of requests that have ended, and the expected number of requests. With
several replications it is called with ``replications``, the number that are done, and the expected number."""


@dataclass(frozen=True, slots=True)
class Replication:
    """One replication of every policy.

    Attributes
    ----------
    number : int
    runs : tuple of PolicyRun
        One per policy, in the order of the scenario.
    requests : tuple of Request
        Requests with fixed arrival times; empty if they were streamed, or if another process made the replication.
    policies : mapping of str to Policy
        Each policy after its run; empty if another process made the replication.
    notes : tuple of str
        Notes of the workload, such as rows that were dropped.
    """

    number: int
    runs: tuple[PolicyRun, ...]
    requests: tuple[Request, ...]
    policies: Mapping[str, Policy]
    notes: tuple[str, ...]

    @property
    def recordings(self) -> dict[str, Recording]:
        """The recording of each policy, by name."""
        return {run.policy: run.recording for run in self.runs}


def replicate(
    scenario: ResolvedScenario,
    number: int,
    *,
    check: bool,
    progress: Progress | None = None,
    stream: Stream | None = None,
    where: Executor = _HERE,
) -> Replication:
    """Run every policy once, on the requests of one replication.

    Parameters
    ----------
    scenario : ResolvedScenario
    number : int
        Number of the replication, from 0; it selects the random streams.
    check : bool
        Check the invariants after every step.
    progress : callable, optional
        See `Progress`.
    stream : Stream, optional
        Where the tables of each policy are written during the run. They are then not kept in memory.
    where : Executor
        Plays the replicas of a fleet that are independent.
    """
    built = build_all(scenario)
    traffic = make_traffic(scenario, number, kept=stream is None)
    runs = []
    for policy in scenario.policies:
        name = policy.name
        on_end = _reporter(progress, name, traffic.expected_requests)
        chosen = options(scenario, policy, check=check)
        sinks = None if stream is None else stream.sinks(name)
        if policy.fleet is None:
            recording = Simulation(traffic, built[name], policy.step_time, chosen, on_end, sinks=sinks).run()
        else:
            recording = _play_fleet(scenario, policy.fleet, number, traffic, chosen, on_end, sinks, where)
        runs.append(
            PolicyRun(name, number, replace(recording, warnings=(*recording.warnings, *_outside(policy, recording))))
        )
    # streamed requests are not kept, and those of sessions depend on the answers
    fixed = isinstance(traffic.requests, list) and not traffic.session_groups
    return Replication(number, tuple(runs), tuple(traffic.requests) if fixed else (), built, traffic.notes)


def _play_fleet(
    scenario: ResolvedScenario,
    fleet: ResolvedFleet,
    number: int,
    traffic: Traffic,
    chosen: RunOptions,
    on_end: Callable[[int], None] | None,
    sinks: Sinks | None,
    where: Executor,
) -> Recording:
    """Play one replication of a fleet, over several processes if that is possible and worth it."""
    own = parts(scenario, fleet)
    if sinks is None:
        recording = played_apart(traffic, own, rules(scenario, fleet, number), chosen, where, on_end)
        if recording is not None:
            return recording
    return FleetSimulation(traffic, own, rules(scenario, fleet, number), chosen, on_end, sinks).run()


def _outside(policy: ResolvedPolicy, recording: Recording) -> list[str]:
    """Return what the models of step times say about a run."""
    found = [(name, one.step_time.warnings(steps_of_group(recording, name))) for name, one in systems(policy)]
    if len(found) == 1:
        return found[0][1]
    return [f"{name}: {line}" for name, lines in found for line in lines]


def options(scenario: ResolvedScenario, policy: ResolvedPolicy, *, check: bool) -> RunOptions:
    """Return the run options of a policy of a scenario."""
    resolution_s = scenario.clock_resolution_s
    return RunOptions(
        horizon_s=NEVER_S if scenario.horizon_s is None else scenario.horizon_s,
        fast=scenario.fast,
        check=check,
        ticks_per_s=None if resolution_s is None else round(1 / resolution_s),
        max_queued_requests=scenario.max_queued_requests,
        front_end=policy.front_end,
    )


def _reporter(progress: Progress | None, policy: str, total: int) -> Callable[[int], None] | None:
    if progress is None:
        return None
    step = max(1, total // 200)

    def on_end(ended: int) -> None:
        if ended % step == 0 or ended == total:
            progress(policy, ended, total)

    return on_end
