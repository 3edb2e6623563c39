"""The runs of a search: where they are made, how many there were, and when they are too many."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from simqueue.decisions.budget import Budget, BudgetSpentError
from simqueue.decisions.tuning.contender import Contender, State
from simqueue.execution import Executor, Failed
from simqueue.execution.here import ThisProcess
from simqueue.experiment.replication import Progress, Replication, replicate
from simqueue.experiment.runner import CHECK_SWITCH
from simqueue.request import Request
from simqueue.scenario.resolved import ResolvedScenario

SHORT_SHARE: Final = 4
"""A short run has one request in so many."""
_LEAST_SHORT: Final = 250
"""Fewest requests of a short run."""


@dataclass(slots=True)
class Spent:
    """What a search took.

    Attributes
    ----------
    runs, short_runs : int
    requests, steps : int
        Simulated in all of them.
    """

    runs: int = 0
    short_runs: int = 0
    requests: int = 0
    steps: int = 0


@dataclass(frozen=True, slots=True)
class _Task:
    scenario: ResolvedScenario
    number: int


class Runs:
    """Makes the runs of contenders.

    Parameters
    ----------
    scenario : ResolvedScenario
        Any of the systems; all have its traffic.
    executor : Executor
    budget : Budget
    progress : callable, optional
        See `Progress`.
    requests : tuple of Request
        Of replication 0, as far as they are fixed.
    """

    def __init__(
        self,
        scenario: ResolvedScenario,
        executor: Executor,
        budget: Budget,
        progress: Progress | None,
        requests: tuple[Request, ...],
    ) -> None:
        self.spent = Spent()
        self.seed = scenario.seed
        self.requests = requests
        self.short_requests = _short_requests(scenario)
        self._executor, self._budget, self._progress = executor, budget, progress
        self._seconds_each: float | None = None

    def short(self, contenders: Sequence[Contender]) -> None:
        """Run the first part of the traffic through contenders; where it has no such part, all of it."""
        size = self.short_requests
        if size is None:
            self.up_to(dict.fromkeys(contenders, 1))
            return
        tasks = [_Task(one.system.scenario.with_(num_requests=size), 0) for one in contenders]
        for one, made in self._made(contenders, tasks, "short runs"):
            self.spent.short_runs += 1
            one.take_short(made)

    def up_to(self, counts: dict[Contender, int]) -> None:
        """Run contenders until each has so many replications."""
        pairs = [(one, number) for one, count in counts.items() for number in range(len(one.runs), count)]
        tasks = [_Task(one.system.scenario, number) for one, number in pairs]
        label = f"{len(counts)} systems, to replication {max(counts.values(), default=0)}"
        for one, made in self._made([one for one, _ in pairs], tasks, label):
            self.spent.runs += 1
            if one.state is not State.FAILED:
                one.take(made, self.requests)

    def _made(
        self, owners: Sequence[Contender], tasks: Sequence[_Task], label: str
    ) -> Iterator[tuple[Contender, Replication]]:
        """Yield what was made, in the order of the tasks; a contender whose run failed has failed.

        The budget can end before all tasks are done. `BudgetSpentError` is raised after those that were done.
        """
        outcomes: dict[int, Replication | Failed] = {}
        for number, outcome in self._played(tasks):
            outcomes[number] = outcome
            if self._progress is not None:
                self._progress(label, len(outcomes), len(tasks))
        for number, found in sorted(outcomes.items()):
            owner = owners[number]
            if isinstance(found, Failed):
                owner.give_up(State.FAILED, found.error)
                continue
            recording = found.runs[0].recording
            self.spent.requests += len(recording.requests["arrival_s"])
            self.spent.steps += sum(int(part["repeat"].sum()) for part in recording.steps.parts("repeat"))
            yield owner, found
        if len(outcomes) < len(tasks):
            raise BudgetSpentError(self._budget.used_up())

    def _played(self, tasks: Sequence[_Task]) -> Iterator[tuple[int, Replication | Failed]]:
        """Yield the outcomes of tasks; this process makes the first run, and tells from it whether others would pay."""
        done = 0
        if self._seconds_each is None and tasks:
            began_s = time.monotonic()
            yield from ThisProcess().unordered(_play, self._budget.allowed(tasks[:1]))
            self._seconds_each, done = time.monotonic() - began_s, 1
        rest = tasks[done:]
        pays = self._executor.pays(len(rest) * (self._seconds_each or 0.0))
        chosen = self._executor if pays else ThisProcess()
        for number, outcome in chosen.unordered(_play, self._budget.allowed(rest)):
            yield done + number, outcome


def _play(task: _Task) -> Replication:
    """Make one replication, and return only what is used of it."""
    made = replicate(task.scenario, task.number, check=os.environ.get(CHECK_SWITCH) == "1")
    return replace(made, requests=(), policies={})


def _short_requests(scenario: ResolvedScenario) -> int | None:
    """Return how many requests a short run has; None if the first part of the traffic is not like the rest of it.

    A run begins with an empty system, whose requests are served sooner than later ones. So what is surely too slow in a
    short run is so in a long one. This does not hold where prompts have tokens in common: the cache begins empty, too.
    """
    workload = scenario.workload
    if workload is None or workload.arrivals is None or workload.independent_lengths is None:
        return None
    if workload.num_requests is None or scenario.horizon_s is not None:
        return None
    size = max(_LEAST_SHORT, workload.num_requests // SHORT_SHARE)
    return size if size * 2 <= workload.num_requests else None
