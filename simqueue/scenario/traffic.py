"""The requests of a scenario."""

from __future__ import annotations

from simqueue.errors import inside
from simqueue.scenario.resolved import ResolvedScenario, workload_path
from simqueue.traffic import Traffic
from simqueue.workload.generate import generate, generate_all
from simqueue.workload.randomness import is_random


def make_traffic(scenario: ResolvedScenario, replication: int = 0, *, kept: bool = True) -> Traffic:
    """Return the requests of one replication, of all workloads together.

    Parameters
    ----------
    scenario : ResolvedScenario
    replication : int
        Number of the replication, from 0; it selects the random streams.
    kept : bool
        Whether all requests are made at once. If not, those of a single workload are made when they are needed, as
        far as the workload allows it.

    Raises
    ------
    InputError
        If a file cannot be read or has too few rows, or arrivals are too few or too many.
    """
    seed, base_dir, workload = scenario.seed, scenario.base_dir, scenario.workload
    if workload is not None:
        with scenario.written.locating(), inside("workload"):
            return generate(workload, seed=seed, replication=replication, base_dir=base_dir, kept=kept)
    named = {name: found for name, found in scenario.workloads.items() if name is not None}
    with scenario.written.locating(), inside("workloads"):
        return generate_all(named, seed=seed, replication=replication, base_dir=base_dir)


def is_random_run(scenario: ResolvedScenario) -> bool:
    """Return whether two replications can differ: workloads can draw, and fleets; schedulers and step times do not.

    Raises
    ------
    InputError
        If a length distribution cannot be built.
    """
    if any(policy.fleet is not None and policy.fleet.draws for policy in scenario.policies):
        return True
    for name, workload in scenario.workloads.items():
        with scenario.written.locating(), inside(*workload_path(name)):
            if is_random(workload, scenario.base_dir):
                return True
    return False
