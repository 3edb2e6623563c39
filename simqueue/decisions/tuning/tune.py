"""Which system of a space is the cheapest that keeps its limits, or has the best value of a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from simqueue.decisions.budget import Budget
from simqueue.decisions.conditions import OF_SCENARIO, Conditions, parse_conditions
from simqueue.decisions.traffic import is_steady
from simqueue.decisions.tuning.answer import Tuning
from simqueue.decisions.tuning.candidates import Candidate, System, settled, with_law
from simqueue.decisions.tuning.model_error import at_errors
from simqueue.decisions.tuning.pruning import overload
from simqueue.decisions.tuning.question import COST, TIE, Question
from simqueue.decisions.tuning.runs import Runs
from simqueue.decisions.tuning.search import Searched, search
from simqueue.decisions.tuning.space import Space, axes_in, space_of
from simqueue.decisions.tuning.taskfile import Task, read_task
from simqueue.decisions.tuning.telling import answer_of
from simqueue.errors import InputError, show
from simqueue.execution import Executor
from simqueue.execution.choice import opened
from simqueue.experiment.best import zone_of
from simqueue.experiment.metric_names import better, check_names, numeric_columns
from simqueue.experiment.replication import Progress
from simqueue.request import Request
from simqueue.scenario.load import parsed, source_of_mapping
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import is_random_run, make_traffic
from simqueue.statistics.intervals import CONFIDENCE, check_confidence
from simqueue.sweeps.design import Design, points_of

MOST_REPLICATIONS: Final = 32
SHOWN: Final = 5
"""Systems that are shown and written as scenarios."""
ZONE: Final = "2%"


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a space; see `tune`."""

    slo: Sequence[str] = ()
    attainment: float | None = None
    minimize: str = COST
    maximize: str | None = None
    tie: str = TIE
    zone: str = ZONE
    confidence: float = CONFIDENCE
    max_replications: int = MOST_REPLICATIONS
    max_runs: int | None = None
    budget_s: float | None = None
    shown: int = SHOWN
    with_model_error: bool = False


def tune(
    scenario: str | Path | Mapping[str, Any],
    space: Sequence[str] | Mapping[str, Any] = (),
    slo: Sequence[str] | None = None,
    *,
    attainment: float | None = None,
    minimize: str | None = None,
    maximize: str | None = None,
    tie: str | None = None,
    zone: str | None = None,
    policy: str | None = None,
    confidence: float | None = None,
    max_replications: int | None = None,
    max_runs: int | None = None,
    budget_s: float | None = None,
    shown: int | None = None,
    with_model_error: bool | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    workers: int | Executor | None = None,
) -> Tuning:
    """Find the cheapest system of a space that keeps its limits, or the one with the best value of a metric.

    Parameters
    ----------
    scenario : str, Path or mapping
        A scenario file, the name of a packaged scenario, or the keys of a scenario. Its traffic is that of all systems.
        Or a file with `scenario`, `space`, `slo` and further parameters as keys; parameters that are given here come
        first.
    space : sequence of str or mapping
        ``KEY=VALUES`` each, as the axes of a sweep, or a mapping of keys to values. A key of the policy needs no
        ``policies.NAME.`` before it.
    slo : sequence of str
        Limits such as ``p99_ttft_ms<=1000``, see `parse_conditions`.
    attainment : float, optional
        Share of the requests that must meet limits of single requests; by default 0.99.
    minimize : str, optional
        ``cost`` (default), in USD per hour of the GPUs (in GPUs if a price is unknown), or a column of the summary.
    maximize : str, optional
        A column of the summary, instead of `minimize`.
    tie : str, optional
        Column of the summary that decides between systems of the same cost; by default ``mean_e2el_ms``.
    zone : str, optional
        Difference of the metric that does not matter, as a percentage of the best value; by default ``2%``.
    policy : str, optional
        The policy whose keys vary; by default the only one.
    confidence : float, optional
        Probability that the answer is right; by default 0.95.
    max_replications : int, optional
        Most replications of one system; by default 32.
    max_runs : int, optional
        Most runs of all systems together.
    budget_s : float, optional
        Most time in seconds; what was found until then is the answer, which is then not the same each time.
    shown : int, optional
        How many systems are shown and written as scenarios; by default 5.
    with_model_error : bool, optional
        Whether the search is made again with step times that are off by their published errors.
    overrides, seed, progress, workers
        As for `run`.

    Raises
    ------
    InputError
        If the scenario, the space or a limit is wrong.
    """
    task = Task(source_of_mapping(scenario)) if isinstance(scenario, Mapping) else read_task(scenario)
    parameters = {
        "slo": slo,
        "attainment": attainment,
        "minimize": minimize,
        "maximize": maximize,
        "tie": tie,
        "zone": zone,
        "confidence": confidence,
        "max_replications": max_replications,
        "max_runs": max_runs,
        "budget_s": budget_s,
        "shown": shown,
        "with_model_error": with_model_error,
    }
    ask = Ask(**{**task.asked, **{name: value for name, value in parameters.items() if value is not None}})
    _check(ask)
    overridden = (*task.overrides, *parsed(overrides, seed))
    found = space_of(task.source, axes_in(space) or task.axes, policy=policy or task.policy, overrides=overridden)
    return _answered(found, ask, progress, workers)


def _check(ask: Ask) -> None:
    check_confidence(ask.confidence)
    counts = (("max_replications", ask.max_replications, 2), ("max_runs", ask.max_runs, 1), ("shown", ask.shown, 1))
    for name, value, least in counts:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise InputError(f"{name} = {show(value)}: must be a whole number >= {least}")
    if ask.budget_s is not None and not ask.budget_s > 0:
        raise InputError(f"budget_s = {show(ask.budget_s)}: must be > 0")


def _answered(space: Space, ask: Ask, progress: Progress | None, workers: int | Executor | None) -> Tuning:
    conditions = _conditions(space, ask.slo, ask.attainment)
    points = points_of(Design(grid=space.axes), space.cells.is_whole)
    candidates = list(settled(space, points.values, conditions))
    if all(one.scenario is None for one in candidates):
        raise InputError(f"the space has no system: {candidates[0].reason}")
    question = _question(conditions, candidates, ask)
    with opened(workers) as executor:
        budget = Budget(ask.max_runs, ask.budget_s)
        make = partial(_searched, question=question, budget=budget, executor=executor, progress=progress)
        found = make(candidates)
        answer = answer_of(space, candidates, found, question, shown=ask.shown, notes=points.notes)
        if not ask.with_model_error or found.best is None:
            return answer
        return replace(answer, at_errors=at_errors(answer, found.best, found.contenders, candidates, make))


def _conditions(space: Space, slo: Sequence[str], attainment: float | None) -> Conditions:
    """Return the conditions; the scenario is settled only if its own limits are asked for."""
    own = OF_SCENARIO in slo
    scenario = space.cells.source.scenario(space.cells.overrides).resolve() if own else None
    return parse_conditions(slo, attainment=attainment, scenario=scenario)


def _question(conditions: Conditions, candidates: Sequence[Candidate], ask: Ask) -> Question:
    scenarios = [one.scenario for one in candidates if one.scenario is not None]
    metric, largest, by_cost = _goal(ask, scenarios[0])
    return Question(
        conditions=conditions,
        steady=is_steady(scenarios[0]),
        random=any(map(is_random_run, scenarios)),
        by_cost=by_cost,
        metric=metric,
        largest=largest,
        zone=_zone(ask.zone),
        confidence=ask.confidence,
        max_replications=ask.max_replications,
    )


def _goal(ask: Ask, scenario: ResolvedScenario) -> tuple[str, bool, bool]:
    """Return the metric that decides, whether larger values of it are better, and whether the cost comes first."""
    if ask.maximize is not None and ask.minimize != COST:
        raise InputError("minimize and maximize: give one of the two")
    by_cost = ask.maximize is None and ask.minimize == COST
    metric = ask.tie if by_cost else (ask.maximize or ask.minimize)
    check_names(scenario.policy_names, None, [metric], numeric_columns(scenario))
    if not by_cost:
        return metric, ask.maximize is not None, False
    if not better(metric):
        raise InputError(f"tie = {metric}: neither larger nor smaller values of it are better")
    return metric, better(metric) == "higher", True


def _zone(zone: str) -> float:
    share, _ = zone_of(zone)
    if share is None:
        raise InputError(f"zone = {show(zone)}: must be a percentage, such as 2%")
    return share


def _searched(
    candidates: Sequence[Candidate],
    *,
    question: Question,
    budget: Budget,
    executor: Executor,
    progress: Progress | None,
) -> Searched:
    """Return what a search among candidates finds."""
    any_scenario = next(one.scenario for one in candidates if one.scenario is not None)
    requests = _fixed_requests(any_scenario)
    systems, pruned = _pruned(candidates, question, requests)
    priced = question.by_cost and all(one.cost.usd_per_hour is not None for one in systems)
    runs = Runs(any_scenario, executor, budget, progress, requests)
    return search(systems, question, runs, pruned, priced=priced)


def _fixed_requests(scenario: ResolvedScenario) -> tuple[Request, ...]:
    """Return the requests of replication 0 if they are the same whatever serves them."""
    traffic = make_traffic(scenario, 0)
    is_fixed = isinstance(traffic.requests, list) and not traffic.session_groups
    return tuple(traffic.requests) if is_fixed else ()


def _pruned(
    candidates: Iterable[Candidate], question: Question, requests: Sequence[Request]
) -> tuple[list[System], dict[int, str]]:
    """Return the systems that may serve the load, and why the others cannot, by number."""
    left, pruned = [], {}
    for one in candidates:
        if one.scenario is None:
            continue
        system = with_law(one, requests)
        reason = overload(system, steady=question.steady)
        if reason:
            pruned[one.number] = reason
        else:
            left.append(system)
    return left, pruned
