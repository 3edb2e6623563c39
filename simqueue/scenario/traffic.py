"""The requests of a scenario."""

from __future__ import annotations

from simqueue.errors import inside
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.traffic import Traffic
from simqueue.workload.generate import generate, generate_all


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
