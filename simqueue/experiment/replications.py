"""Independent replications: how many, and where they are made.

Every replication has its own requests, which are the same for all policies: policies are compared on common random
numbers. The result of a replication depends only on the scenario, the seed and its number, not on the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from simqueue.errors import InputError
from simqueue.execution import Executor, in_order
from simqueue.experiment.replication import Progress, Replication, replicate
from simqueue.experiment.until_precise import until_precise
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import is_random_run

if TYPE_CHECKING:
    from simqueue.results.streaming import Stream


def all_replications(
    scenario: ResolvedScenario,
    where: Executor,
    *,
    check: bool,
    progress: Progress | None = None,
    stream: Stream | None = None,
) -> list[Replication]:
    """Return the replications of a scenario: a fixed number, or as many as its precision needs.

    Parameters
    ----------
    scenario : ResolvedScenario
    where : Executor
        Does the replications, or the replicas of a fleet in a single one. The results do not depend on it.
    check : bool
        See `replicate`.
    progress : callable, optional
        See `Progress`.
    stream : Stream, optional
        See `replicate`. Only with a single replication, see `check_streamable`.

    Raises
    ------
    InputError
        If the metric of the precision is undefined, or if several replications are to be streamed.
    RunError
        If a run fails, or if its tables cannot be written.
    """
    if scenario.replications == 1 and scenario.precision is None:
        return [replicate(scenario, 0, check=check, progress=progress, stream=stream, where=where)]
    if stream is not None:
        check_streamable(scenario)
    made = Replications(scenario, where, check, progress)
    if scenario.precision is None:
        return made.up_to(scenario.replications)
    return until_precise(made.up_to, scenario, scenario.precision)


def check_streamable(scenario: ResolvedScenario) -> None:
    """Raise `InputError` if the tables of a scenario cannot be streamed, because it has several replications."""
    if (scenario.replications > 1 or scenario.precision is not None) and is_random_run(scenario):
        raise InputError(
            f"{scenario.name}: streaming needs a single replication; set replications: 1 and precision: null"
        )


class Replications:
    """The replications of a scenario, in order. They are made by this process or by others."""

    def __init__(self, scenario: ResolvedScenario, where: Executor, check: bool, progress: Progress | None) -> None:
        self._scenario, self._where, self._check, self._progress = scenario, where, check, progress
        self._made: list[Replication] = []
        self._seconds_each = 0.0

    def up_to(self, count: int) -> list[Replication]:
        """Return the first `count` replications; each is made once."""
        if not self._made:
            started = time.perf_counter()
            self._made.append(replicate(self._scenario, 0, check=self._check))
            self._seconds_each = time.perf_counter() - started
        missing = range(len(self._made), count)
        made = self._elsewhere(missing) if self._pays(len(missing)) else map(self._here, missing)
        self._tell(count)
        for replication in made:
            self._made.append(replication)
            self._tell(count)
        return self._made[:count]

    def keep(self, policies: Sequence[str]) -> None:
        """Leave all other policies out of the replications that are still to be made; nothing else of them changes."""
        self._scenario = self._scenario.with_(policies=policies)

    def _pays(self, count: int) -> bool:
        return count > 1 and self._where.pays(count * self._seconds_each)

    def _here(self, number: int) -> Replication:
        return replicate(self._scenario, number, check=self._check)

    def _elsewhere(self, numbers: Sequence[int]) -> Iterator[Replication]:
        return in_order(self._where, partial(_only_used, self._scenario, self._check), numbers, "replication")

    def _tell(self, total: int) -> None:
        if self._progress is not None:
            self._progress("replications", len(self._made), total)


def _only_used(scenario: ResolvedScenario, check: bool, number: int) -> Replication:
    """Make a replication in another process, and return only what is used of it."""
    made = replicate(scenario, number, check=check)
    return replace(made, requests=(), policies={})
