"""Independent replications: how many, and on how many processes.

Every replication has its own requests, which are the same for all policies: policies are compared on common random
numbers. The result of a replication depends only on the scenario, the seed and its number, not on the process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING

from simqueue.errors import InputError, show
from simqueue.experiment.replication import Progress, Replication, replicate
from simqueue.experiment.until_precise import until_precise
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import is_random_run

if TYPE_CHECKING:
    from simqueue.results.streaming import Stream

_WORTH_STARTING_WORKERS_S = 2.0
"""With less work than this (expected seconds), starting worker processes takes longer than it saves."""


def all_replications(
    scenario: ResolvedScenario,
    *,
    check: bool,
    progress: Progress | None = None,
    workers: int | None = None,
    stream: Stream | None = None,
) -> list[Replication]:
    """Return the replications of a scenario: a fixed number, or as many as its precision needs.

    Parameters
    ----------
    scenario : ResolvedScenario
    check : bool
        See `replicate`.
    progress : callable, optional
        See `Progress`.
    workers : int, optional
        Number of processes, at most one per core. By default the number of cores, or 1 if the work is short. The
        results do not depend on it.
    stream : Stream, optional
        See `replicate`. Only with a single replication, see `check_streamable`.

    Raises
    ------
    InputError
        If the metric of the precision is undefined, or if several replications are to be streamed.
    RunError
        If a run fails, or if its tables cannot be written.
    """
    check_workers(workers)
    if scenario.replications == 1 and scenario.precision is None:
        return [replicate(scenario, 0, check=check, progress=progress, stream=stream, workers=workers)]
    if stream is not None:
        check_streamable(scenario)
    made = Replications(scenario, check, progress, workers)
    if scenario.precision is None:
        return made.up_to(scenario.replications)
    return until_precise(made.up_to, scenario, scenario.precision)


def check_workers(workers: int | None) -> None:
    """Raise `InputError` unless a number of processes is a whole number >= 1, or None."""
    if workers is not None and (not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1):
        raise InputError(f"workers = {show(workers)}: must be a whole number >= 1")


def check_streamable(scenario: ResolvedScenario) -> None:
    """Raise `InputError` if the tables of a scenario cannot be streamed, because it has several replications."""
    if (scenario.replications > 1 or scenario.precision is not None) and is_random_run(scenario):
        raise InputError(
            f"{scenario.name}: streaming needs a single replication; set replications: 1 and precision: null"
        )


class Replications:
    """The replications of a scenario, in order. They are made by this process or by worker processes."""

    def __init__(self, scenario: ResolvedScenario, check: bool, progress: Progress | None, workers: int | None) -> None:
        self._scenario, self._check, self._progress, self._workers = scenario, check, progress, workers
        self._made: list[Replication] = []
        self._seconds_each = 0.0

    def up_to(self, count: int) -> list[Replication]:
        """Return the first `count` replications; each is made once."""
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
            self._run_in_workers(missing, workers, count)
        self._tell(count)
        return self._made[:count]

    def keep(self, policies: Sequence[str]) -> None:
        """Leave all other policies out of the replications that are still to be made; nothing else of them changes."""
        self._scenario = self._scenario.with_(policies=policies)

    def _workers_for(self, count: int) -> int:
        useful = max(1, min(os.cpu_count() or 1, count))  # each process more needs memory, and none is faster
        if self._workers is not None:
            return min(int(self._workers), useful)
        if count * self._seconds_each < _WORTH_STARTING_WORKERS_S:
            return 1
        return useful

    def _run_in_workers(self, numbers: Sequence[int], workers: int, total: int) -> None:
        from joblib import Parallel, delayed  # noqa: PLC0415 - joblib loads slowly, and most runs do without

        tasks = (delayed(_in_worker)(self._scenario, number, self._check) for number in numbers)
        for replication in Parallel(n_jobs=workers, return_as="generator", max_nbytes=None)(tasks):
            self._made.append(replication)
            self._tell(total)

    def _tell(self, total: int) -> None:
        if self._progress is not None:
            self._progress("replications", len(self._made), total)


def _in_worker(scenario: ResolvedScenario, number: int, check: bool) -> Replication:
    """Make a replication in a worker process, and return only what is used of it."""
    made = replicate(scenario, number, check=check)
    return replace(made, requests=(), policies={})
