"""Contenders: systems in the race, what their runs said, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from simqueue.decisions.conditions import Condition
from simqueue.decisions.judgement import Judgement, Verdict, judge
from simqueue.decisions.tuning.candidates import System
from simqueue.decisions.tuning.evidence import fewest_replications, lower_end, surely_below
from simqueue.decisions.tuning.question import Errors, Question, at_look
from simqueue.decisions.tuning.series import Values, check_length, column_value, excess, mean_of, per_request
from simqueue.errors import InputError
from simqueue.experiment.replication import Replication
from simqueue.experiment.run_loads import RunLoads
from simqueue.experiment.runner import result_of
from simqueue.experiment.warmup import WarmUp, warm_up, with_window
from simqueue.request import Request
from simqueue.results.policyrun import PolicyRun
from simqueue.results.result import Result
from simqueue.statistics.verdict import Law, majority


class State(StrEnum):
    """What is known of a contender."""

    OPEN = "open"
    GOOD = "keeps its limits"
    BAD = "does not keep its limits"
    UNKNOWN = "cannot be told"
    WORSE = "not better than the best"
    FAILED = "its run failed"
    UNTRIED = "not tried"


@dataclass(slots=True)
class Run:
    """One run of a contender.

    Attributes
    ----------
    run : PolicyRun
    excess : dict of Condition to array
        See `series.excess`.
    value : float
        Of the metric; smaller is better.
    each : array or None
        Of each request, if the metric is a mean over requests.
    """

    run: PolicyRun
    excess: dict[Condition, Values]
    value: float
    each: Values | None


@dataclass(frozen=True, slots=True)
class Miss:
    """How far a system is beyond a limit.

    Attributes
    ----------
    condition : Condition
    value : float
        Mean over its runs.
    ratio : float
        Value over limit, or limit over value if that is a least one: above 1 if the limit is not kept.
    """

    condition: Condition
    value: float
    ratio: float

    @classmethod
    def of(cls, condition: Condition, value: float) -> Miss:
        """Return the miss of a value."""
        over, under = (value, condition.limit) if condition.at_most else (condition.limit, value)
        return cls(condition, value, over / under if under else (float("inf") if over > 0 else 1.0))


@dataclass(eq=False)
class Contender:
    """A system in the race.

    Attributes
    ----------
    system : System
    question : Question
    state : State
    reason : str
        Why it is no longer in the race.
    short : Run or None
        A run of the first part of the traffic.
    runs : list of Run
        Whole ones, one per replication.
    looks : int
        How often it was judged.
    replications : list of Replication
        What the runs were made of.
    warm : WarmUp or None
        What is cut at the start of each run; None before the first whole one.
    loads : RunLoads or None
        What runs are told about the load; None before the first whole one.
    tests : int
        How often it was compared with a better one.
    compared_with : tuple of int or None
        The number of that one, and how many replications were compared: without others, no second test is made.
    looked_worse : bool
        Whether it was not run further because it looked worse than the best.
    made : int
        Whole runs that it had when it left the race.
    missed : Miss or None
        Of one that does not keep its limits.
    """

    system: System
    question: Question
    state: State = State.OPEN
    reason: str = ""
    short: Run | None = None
    runs: list[Run] = field(default_factory=list)
    looks: int = 0
    replications: list[Replication] = field(default_factory=list)
    warm: WarmUp | None = None
    loads: RunLoads | None = None
    tests: int = 0
    compared_with: tuple[int, int] | None = None
    looked_worse: bool = False
    made: int = 0
    missed: Miss | None = None

    @property
    def number(self) -> int:
        """Its place in the space."""
        return self.system.number

    @property
    def in_race(self) -> bool:
        """Whether it can still be the best."""
        return self.state in (State.OPEN, State.GOOD)

    @cached_property
    def law(self) -> Law:
        """What the capacity law says about overload."""
        found = self.system.law
        rate_rps = None if found.capacity is None else found.capacity.max_rate_rps
        return Law(found.load, rate_rps, doubtful=bool(found.doubt))

    def take_short(self, made: Replication) -> None:
        """Take a run of the first part of the traffic, of which nothing is cut: it only gives up what is far off."""
        self.short = self._read(made.runs[0])

    def take(self, made: Replication, requests: tuple[Request, ...]) -> None:
        """Take a whole run; the first ones decide what is cut at the start of all."""
        self.replications.append(made)
        if self.warm is None:
            check_length(made.runs[0], self.question.conditions)
            self.loads = RunLoads(self.system.scenario, replace(made, requests=requests))
            self.warm = warm_up(self.system.scenario, [made], self.loads)
        self.runs.append(self._read(with_window(self.system.scenario, self.warm, made.runs[0])))

    def _read(self, run: PolicyRun) -> Run:
        scenario, question = self.system.scenario, self.question
        found = {one: excess(run, one, scenario) for one in question.conditions.all}
        each = per_request(run, question.metric)
        if each is None:
            value = column_value(run, question.metric, scenario)
        else:
            value = float(np.nanmean(each)) if np.isfinite(each).any() else float("inf")
        return Run(run, found, question.sign * value, None if each is None else question.sign * each)

    def result(self) -> Result:
        """Return all its whole runs, as a run of the system gives them.

        Raises
        ------
        InputError
            If there are none.
        """
        scenario = self.system.scenario
        if self.warm is None or self.loads is None:
            raise InputError(f"system {self.number} has no run")
        return result_of(scenario, scenario.with_(precision=None), self.replications, self.warm, self.loads)

    def judgement(self) -> Judgement:
        """Return what all its whole runs together say about the limits."""
        name = self.system.scenario.policy_names[0]
        return judge(self.result(), name, self.question.conditions, steady=self.question.steady)

    # -- limits -----------------------------------------------------------------------------------------------------

    def look(self, errors: Errors) -> None:
        """Say what is known of its limits after the runs that there are."""
        self.looks += 1
        reason = self._overloaded() or self._gives_up(errors)
        if reason:
            self.give_up(State.BAD, reason)
        elif self.runs and self._keeps(errors):
            self.state = State.GOOD
        elif self.state is State.OPEN and (close := self._too_close(errors)):
            self.give_up(State.UNKNOWN, f"{close} is too close to be told")

    def give_up(self, state: State, reason: str) -> None:
        """Leave the race. Of one that does not keep its limits, only what it missed is kept."""
        self.state, self.reason, self.made = state, reason, len(self.runs)
        if state is State.BAD:
            self.missed = self.miss()
            self.short, self.runs, self.replications = None, [], []

    def miss(self) -> Miss | None:
        """Return the limit that it is furthest beyond, or nearest to; None without a value."""
        runs = self.runs or ([self.short] if self.short else [])
        found = []
        for one in self.question.conditions.all:
            try:
                values = [column_value(run.run, one.column, self.system.scenario, one.request_class) for run in runs]
            except InputError:  # nothing was measured, or too little
                continue
            if values:
                found.append(Miss.of(one, float(np.mean(values))))
        return max(found, key=lambda miss: miss.ratio, default=None)

    def worst(self) -> tuple[Condition, float] | None:
        """Return the limit that it keeps least, and by how much it is passed on average; above 0 if it is not kept."""
        runs = self.runs or ([self.short] if self.short else [])
        if not runs:
            return None
        means = {
            one: mean_of(np.concatenate([run.excess[one] for run in runs])) for one in self.question.conditions.all
        }
        return max(means.items(), key=lambda item: item[1])

    def _too_close(self, errors: Errors) -> str:
        """Return which limit no more runs are made for: there are many, or all of its interval is within the zone."""
        worst = self.worst()
        if len(self.runs) >= self.question.max_replications and worst is not None:
            return str(worst[0])
        if len(self.runs) < fewest_replications(errors.taken):
            return ""
        for one in self.judgement().each:
            width = self.question.zone * abs(one.condition.limit)
            ends = [end for end in (one.low, one.high) if end is not None]
            if len(ends) == 2 and all(abs(end - one.condition.limit) <= width for end in ends):
                return str(one.condition)
        return ""

    def _overloaded(self) -> str:
        if not self.question.steady or not self.runs:
            return ""
        found = majority([one.run.signs.unsteady(self.law) for one in self.runs])
        return "overloaded: there is no steady state" if found is True else ""

    def _gives_up(self, errors: Errors) -> str:
        """Return which limit it surely does not keep; an empty text if there is none."""
        runs = self.runs or ([self.short] if self.short else [])
        for one in self.question.conditions.all:
            series = [run.excess[one] for run in runs]
            if not all(len(values) for values in series):
                return f"{one.column}: no request finished"
            if not self.question.random and self.runs:
                is_beyond = mean_of(series[0]) > 0
            else:
                low = lower_end(series, at_look(errors.given_up, self.looks))
                is_beyond = low is not None and low > 0
            if is_beyond:
                return f"{one} is not kept"
        return ""

    def _keeps(self, errors: Errors) -> bool:
        """Return whether it surely keeps all limits: by the test, and by the intervals that are shown."""
        if self.question.random:
            for one in self.question.conditions.all:
                if not surely_below([run.excess[one] for run in self.runs], errors.taken):
                    return False
        return self.judgement().verdict is Verdict.MET


def not_better(one: Contender, best: Contender, errors: Errors, *, gross: float) -> bool:
    """Return whether a contender is surely not better than another one by the zone or more, on the same requests.

    A run of the first part of the traffic begins with an empty system, and the order of two systems can change later.
    It only drops what is worse by `gross` or more, as a share of the value of the better one.
    """
    n = min(len(one.runs), len(best.runs))
    if n:
        pairs, zone = list(zip(one.runs[:n], best.runs[:n], strict=True)), -one.question.zone
    elif one.short is not None and best.short is not None:
        pairs, zone = [(one.short, best.short)], gross
    else:
        return False
    level = abs(float(np.mean([better.value for _, better in pairs])))
    differences = [_difference(mine, better) for mine, better in pairs]
    if not one.question.random:
        return float(differences[0].mean()) >= 0
    if one.compared_with == (best.number, n):  # the same runs say the same again
        return False
    one.compared_with, one.tests = (best.number, n), one.tests + 1
    low = lower_end(differences, at_look(errors.compared, one.tests))
    return low is not None and low > zone * level


def _difference(mine: Run, better: Run) -> Values:
    """Return the differences of two runs by request, if these are the same; else of their values."""
    arrivals = mine.run.recording.requests["arrival_s"], better.run.recording.requests["arrival_s"]
    if mine.each is not None and better.each is not None and np.array_equal(arrivals[0], arrivals[1]):
        found = mine.each - better.each
        return found[np.isfinite(found)]
    return np.array([mine.value - better.value])
