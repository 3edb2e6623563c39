"""The highest rate at which each policy of a scenario keeps limits on latency, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

from simqueue.decisions.answers import Answer, Answers, ModelRange
from simqueue.decisions.assembly import answered
from simqueue.decisions.budget import BUDGET, Budget, BudgetSpentError
from simqueue.decisions.conditions import Condition, Conditions, parse_conditions
from simqueue.decisions.saturation import BACKLOGS, StableRate, measured, stable_rate, told_by_law
from simqueue.decisions.search import NO_RATE, REPLICATIONS, Search, Wanted
from simqueue.decisions.traffic import WARM_UP, scaled_traffic
from simqueue.decisions.trials import Told, Trials
from simqueue.errors import InputError, show
from simqueue.execution import Executor
from simqueue.execution.choice import opened
from simqueue.experiment import questions
from simqueue.experiment.model_error import PublishedError, published_error
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.experiment.replication import Progress
from simqueue.experiment.runner import as_resolved
from simqueue.results.latencies import GOOD, parsed
from simqueue.results.replicated import values_needed
from simqueue.scenario.factors import with_factors
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolved import ResolvedScenario

if TYPE_CHECKING:
    import pandas as pd

PRECISION: Final = 0.02
MOST_RUNS: Final = 600
_LEAST_REQUESTS: Final = 1000
_BEYOND: Final = 20
"""Values beyond a percentile in each run, at least."""

Given = Scenario | ResolvedScenario | str | Path | Mapping[str, Any]


@overload
def capacity(scenario: Given, *, overrides: Sequence[str] = (), seed: int | None = None) -> pd.DataFrame: ...


@overload
def capacity(
    scenario: Given,
    *,
    slo: Sequence[str] | str,
    attainment: float | None = None,
    precision: float = PRECISION,
    requests: int | None = None,
    max_runs: int = MOST_RUNS,
    budget_s: float | None = None,
    with_model_error: bool = False,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    workers: int | Executor | None = None,
) -> Answers: ...


def capacity(
    scenario: Given,
    *,
    slo: Sequence[str] | str | None = None,
    attainment: float | None = None,
    precision: float = PRECISION,
    requests: int | None = None,
    max_runs: int = MOST_RUNS,
    budget_s: float | None = None,
    with_model_error: bool = False,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    workers: int | Executor | None = None,
) -> pd.DataFrame | Answers:
    """Return what each policy can sustain: by the law, or under limits on latency by a search.

    Parameters
    ----------
    scenario, overrides, seed, workers
        As for `run`.
    slo : sequence of str, optional
        Conditions such as ``p99_ttft_ms<=500``, see `parse_conditions`. Without them nothing is simulated, and the
        other parameters have no effect.
    attainment : float, optional
        Share of the requests that must meet limits of single requests.
    precision : float
        Largest length of each side of the interval, as a share of the capacity.
    requests : int, optional
        Of the first runs; by default as many as the percentiles need. Later runs are longer.
    max_runs : int
        Most runs of each policy, with those of backlogs and of `with_model_error`.
    budget_s : float, optional
        Most time of the search of each policy, in seconds. With it, results depend on the speed of the machine.
    with_model_error : bool
        Search also with step times that are off by the published error of the preset, in both directions, and widen
        the interval to what these searches find.
    progress : callable, optional
        See `Progress`; it counts runs.

    Returns
    -------
    DataFrame
        Without `slo`: one row per policy, with the keys of ``simqueue capacity --json`` as columns: capacity in
        requests/s, what limits it, load at the scenario's rate, estimated latencies in ms, and a note.
    Answers
        With `slo`.

    Raises
    ------
    InputError
        If the scenario or a parameter is wrong, if its traffic has no rate that could be changed, or if a condition is
        about a value that the runs do not have.
    RunError
        If a run fails.
    """
    if slo is None:
        return questions.capacity(scenario, overrides=overrides, seed=seed)
    chosen = as_resolved(scenario, overrides, seed)
    conditions = parse_conditions([slo] if isinstance(slo, str) else slo, attainment=attainment, scenario=chosen)
    _check(conditions, precision, requests, max_runs, budget_s)
    wanted = Wanted(precision, requests or _requests_for(conditions))
    asked = conditions.asked_of(chosen).with_(precision=None, replications=1)
    asked.check_traffic()
    with opened(workers) as executor:
        each = []
        for name in asked.policy_names:
            told = _reporter(progress, name, max_runs)
            alone = asked.with_(policies=[name])
            one = _Question(alone, conditions, wanted, executor, told, Budget(max_runs, budget_s))
            each.append(one.with_model_error() if with_model_error else one.answer())
    return Answers(asked.name, scaled_traffic(asked).steady, conditions, tuple(each))


def _check(
    conditions: Conditions, precision: float, requests: int | None, max_runs: int, budget_s: float | None
) -> None:
    if not 0 < precision < 1:
        raise InputError(f"precision = {show(precision)}: must be > 0 and < 1, such as 0.02")
    for name, number, least in (("requests", requests, 100), ("max_runs", max_runs, 10)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < least):
            raise InputError(f"{name} = {show(number)}: must be a whole number >= {least}")
    if budget_s is not None and not budget_s > 0:
        raise InputError(f"budget_s = {show(budget_s)}: must be > 0")
    for one in conditions.all:
        if _eases(one):
            raise InputError(f"--slo: '{one}': a higher rate makes it easier, so it does not limit the capacity")
        least = _least_requests(one)
        if requests is not None and requests < least:
            raise InputError(f"requests = {requests}: {one.column} needs at least {least}, warm-up included")


def _least_requests(one: Condition) -> int:
    """Return how many requests a run in a steady state must have so that a value is defined at all."""
    found = parsed(one.column)
    if found is None or found[0] is None or found[1] == "itl":
        return 0
    return math.ceil(values_needed(found[0]) / (1 - WARM_UP) - 1e-6)


def _eases(one: Condition) -> bool:
    """Return whether a condition does not get harder with more traffic."""
    if one.column == GOOD:
        return one.at_most
    rises = one.column.endswith(("_ms", "_share", "mean_batch", "imbalance_load", "imbalance_kv"))
    return not (rises and one.at_most)


def _requests_for(conditions: Conditions) -> int:
    """Return of how many requests the first runs are: some lie beyond each percentile, after the warm-up."""
    levels = [found[0] for one in conditions.all if (found := parsed(one.column)) and found[0] is not None]
    beyond = [min(level, 100 - level) / 100 for level in levels]
    beyond += [1 - one.limit for one in conditions.all if one.column == GOOD and one.limit < 1]
    return max([_LEAST_REQUESTS, *(math.ceil(_BEYOND / share / (1 - WARM_UP) - 1e-6) for share in beyond)])


def _reporter(progress: Progress | None, policy: str, most: int) -> Told | None:
    if progress is None:
        return None
    expected = min(most, 20 * REPLICATIONS)

    def told(runs: int) -> None:
        progress(policy, runs, max(expected, runs))

    return told


class _Question:
    """The capacity of one policy, the only one of `scenario`."""

    def __init__(
        self,
        scenario: ResolvedScenario,
        conditions: Conditions,
        wanted: Wanted,
        executor: Executor,
        told: Told | None,
        budget: Budget,
    ) -> None:
        self._scenario, self._conditions, self._wanted = scenario, conditions, wanted
        self._executor, self._told, self._budget = executor, told, budget

    def answer(self) -> Answer:
        """Return the answer of one search."""
        scenario = self._scenario
        traffic, law = scaled_traffic(scenario), policy_loads(scenario, estimates=False)[scenario.policy_names[0]]
        trials = Trials(traffic, self._conditions, law, self._executor, self._budget, self._told)
        stable = self._stable(law) if traffic.steady else None
        found = Search(trials, self._wanted, stable).run()
        if found.stable and stable is not None:
            try:
                with self._budget.used(BACKLOGS):
                    stable = measured(scenario, stable)
            except BudgetSpentError as error:
                found.stopped = str(error)
        return answered(trials, found, law, stable)

    def _stable(self, law: PolicyLoad) -> StableRate | None:
        """Return the stable rate; None if it is not known, or if the backlogs that tell it are not allowed any more."""
        if told_by_law(law):
            return stable_rate(self._scenario, law)
        try:
            with self._budget.used(BACKLOGS):
                return stable_rate(self._scenario, law)
        except BudgetSpentError:
            return None

    def with_model_error(self) -> Answer:
        """Return the answer with an interval that holds those of step times that are off by their published error."""
        answer = self.answer()
        error = published_error(answer.row) if answer.row is not None else PublishedError(None, "there is no answer")
        if error.factors is None:
            return replace(answer, model=ModelRange(None, None, None, error.reason))
        name = self._scenario.policy_names[0]
        others = []
        for factor in error.factors:
            slower = with_factors(self._scenario, {name: factor})
            limits = self._conditions, self._wanted, self._executor, self._told, self._budget
            others.append(_Question(slower, *limits).answer())
        return replace(_widened(answer, others, error), runs=self._budget.runs)


def _widened(answer: Answer, others: Sequence[Answer], error: PublishedError) -> Answer:
    """Return an answer whose interval holds those of other ones too: 0 where one of them is that no rate will do."""
    ends = [_ends(one) for one in (answer, *others)]
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    fast, slow = (one.capacity_rps for one in others)
    return replace(
        answer,
        low_rps=None if None in lows else min(low for low in lows if low is not None),
        high_rps=None if None in highs else max(high for high in highs if high is not None),
        stopped=next((one.stopped for one in (answer, *others) if one.stopped.startswith(BUDGET)), answer.stopped),
        model=ModelRange(error.share, slow, fast, error.reason),
    )


def _ends(answer: Answer) -> tuple[float | None, float | None]:
    return (0.0, 0.0) if answer.stopped == NO_RATE else (answer.low_rps, answer.high_rps)
