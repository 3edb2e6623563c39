"""Runs of one policy at chosen rates, which are kept and extended, and what they tell."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from simqueue.decisions.budget import Budget
from simqueue.decisions.conditions import LOST, Conditions
from simqueue.decisions.judgement import Judged, Judgement, interval_of, judge
from simqueue.decisions.traffic import ScaledTraffic
from simqueue.errors import InputError
from simqueue.execution import Executor, Failed, ThisProcess
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.experiment.replication import Replication, replicate
from simqueue.experiment.run_loads import RunLoads
from simqueue.experiment.runner import CHECK_SWITCH, result_of
from simqueue.experiment.warmup import warm_up
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.result import Result
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.intervals import Interval

if TYPE_CHECKING:
    from simqueue.results.summary import Row

Told = Callable[[int], None]
"""Called with the number of runs that are done."""
_KEPT = 5
"""Rates whose runs are kept in memory, so that replications can be added."""

_TOO_FEW, _OF_ALL = "too few for a ", "too few for a steady state"
"""In warnings about what cannot be known from so few, see `simqueue.results.doubts`."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run at one rate: requests per run (of traffic that can be as long as is needed), and replications."""

    requests: int
    replications: int


@dataclass(frozen=True, slots=True)
class Point:
    """What the runs of a policy at one rate tell.

    Attributes
    ----------
    policy : str
    rate_rps : float
    size : Size
    judgement : Judgement
    row : dict
        The summary of all requests.
    warnings : tuple of str
        About these runs.
    """

    policy: str
    rate_rps: float
    size: Size
    judgement: Judgement
    row: Row
    warnings: tuple[str, ...]

    def interval(self, column: str) -> Interval | None:
        """Return a column of the summary with its interval; None if it is undefined."""
        return interval_of(self.row, column)

    @property
    def doubtful(self) -> tuple[str, ...]:
        """The columns of conditions for whose intervals the runs are too short, or too few."""
        lines = [line for line in self.warnings if _TOO_FEW in line]
        columns = dict.fromkeys(one.condition.column for one in self.judgement.each if one.condition.column != LOST)
        return tuple(name for name in columns if any(name in line or _OF_ALL in line for line in lines))

    @property
    def over_limits(self) -> dict[str, tuple[float, float | None, float | None]]:
        """By condition, value over limit with the ends of its interval; for a lower limit, limit over value."""
        found = {}
        for one in self.judgement.each:
            limit = one.condition.limit
            if one.value is not None and limit > 0:
                values = [one.value, one.low, one.high]
                ratios = [None if value is None else _ratio(value, limit, one.condition.at_most) for value in values]
                if ratios[0] is not None and one.value:
                    ends = ratios[1:] if one.condition.at_most else ratios[:0:-1]
                    found[str(one.condition)] = (ratios[0], ends[0], ends[1])
        return found


def _ratio(value: float, limit: float, at_most: bool) -> float | None:
    return value / limit if at_most else limit / value if value else None


class Trials:
    """The runs of one policy.

    Parameters
    ----------
    traffic : ScaledTraffic
        Of a scenario with this policy alone.
    conditions : Conditions
    law : PolicyLoad
        At the rate of the scenario, as far as it is known without a run.
    executor : Executor
    budget : Budget
    told : callable, optional
    """

    def __init__(
        self,
        traffic: ScaledTraffic,
        conditions: Conditions,
        law: PolicyLoad,
        executor: Executor,
        budget: Budget,
        told: Told | None = None,
    ) -> None:
        self.traffic, self.conditions, self.budget = traffic, conditions, budget
        self.policy = traffic.scenario.policy_names[0]
        self._law, self._executor, self._told = law, executor, told
        self._made: dict[tuple[float, int], list[Replication]] = {}
        self.points: dict[tuple[float, Size], Point] = {}

    def at(self, rate_rps: float, size: Size) -> Point:
        """Return what runs at a rate tell; each is made once.

        Raises
        ------
        InputError
            If a condition is about a value that these runs do not have.
        BudgetSpentError
            If it takes more runs than are allowed.
        RunError
            If a run fails.
        """
        wanted = size if self.traffic.random else Size(size.requests, 1)
        if (rate_rps, wanted) not in self.points:
            scenario = self.traffic.at(rate_rps, wanted.requests)
            scenario = scenario.with_(precision=None, replications=wanted.replications)
            made = self._replications(scenario, rate_rps, wanted)
            self.points[rate_rps, wanted] = self._point(scenario, rate_rps, wanted, made)
        return self.points[rate_rps, wanted]

    @property
    def law_rps(self) -> float | None:
        """The capacity by the law; None if it is not known."""
        return None if self._law.capacity is None else self._law.capacity.max_rate_rps

    def judged(self, scenario: ResolvedScenario) -> tuple[Row, Judgement]:
        """Return the summary of a single run of another scenario, and its judgement."""
        made = self._run(scenario, range(1))
        result = self._result(scenario, made, self._loads(scenario, made, None))
        return result.summary_rows[0], judge(result, self.policy, self.conditions)

    def _replications(self, scenario: ResolvedScenario, rate_rps: float, size: Size) -> list[Replication]:
        key = (rate_rps, size.requests)
        made = self._made.pop(key, [])
        made += self._run(scenario, range(len(made), size.replications))
        self._made[key] = made
        while len(self._made) > _KEPT:
            del self._made[next(iter(self._made))]
        return made[: size.replications]

    def _run(self, scenario: ResolvedScenario, numbers: range) -> list[Replication]:
        self.budget.check(len(numbers))
        found: dict[int, Replication] = {}
        where = self._executor if self._pays() else ThisProcess()
        whole = self._law.capacity is None
        for position, outcome in where.unordered(partial(_replication, scenario, whole=whole), numbers):
            if isinstance(outcome, Failed):
                outcome.reraise()
            found[position] = outcome
            self.budget.runs += 1
            if self._told is not None:
                self._told(self.budget.runs)
        return [found[position] for position in sorted(found)]

    def _pays(self) -> bool:
        """Return whether processes are worth starting: the rest of a search takes about as long as what is done."""
        return self._executor.pays(self.budget.elapsed_s)

    def _point(self, scenario: ResolvedScenario, rate_rps: float, size: Size, made: Sequence[Replication]) -> Point:
        result = self._result(scenario, made, self._loads(scenario, made, rate_rps / self.traffic.rate_rps))
        judgement = judge(result, self.policy, self.conditions, steady=self.traffic.steady)
        for one in judgement.each:
            _require(one, self.policy, rate_rps, replicated=size.replications > 1)
        rows = {row["request_class"]: row for row in result.summary_rows}
        return Point(self.policy, rate_rps, size, judgement, rows[ALL_CLASSES], result.warnings)

    def _loads(self, scenario: ResolvedScenario, made: Sequence[Replication], factor: float | None) -> RunLoads:
        """Return the load: by the law that is known, which takes long where a backlog is played."""
        if factor is None or self._law.load is None or not self.traffic.steady:
            return RunLoads(scenario, made[0])
        known = replace(self._law, load=factor * self._law.load, estimate=None)
        return RunLoads(scenario, made[0], {self.policy: known})

    def _result(self, scenario: ResolvedScenario, made: Sequence[Replication], loads: RunLoads) -> Result:
        return result_of(scenario, scenario, made, warm_up(scenario, made, loads), loads)


def _replication(scenario: ResolvedScenario, number: int, *, whole: bool) -> Replication:
    """Return a replication; `whole`: with what only the law of a run needs."""
    made = replicate(scenario, number, check=os.environ.get(CHECK_SWITCH) == "1")
    return made if whole and number == 0 else replace(made, requests=(), policies={})


def _require(one: Judged, policy: str, rate_rps: float, *, replicated: bool) -> None:
    if one.undefined or (replicated and one.value is not None and one.low is None and one.reason):
        raise InputError(f"{policy} at {rate_rps:.4g} per second: {one.reason}")
