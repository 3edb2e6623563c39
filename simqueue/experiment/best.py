"""Which policy of a scenario is best: replications on common random numbers until all others are dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simqueue.errors import InputError, show
from simqueue.execution import Executor, Workers, opened
from simqueue.experiment.metric_names import better, check_names, extras, numeric_columns
from simqueue.experiment.replication import Progress, Replication
from simqueue.experiment.replications import Replications
from simqueue.experiment.run_loads import RunLoads
from simqueue.experiment.runner import as_resolved, result_of
from simqueue.experiment.warmup import WarmUp, warm_up, with_window
from simqueue.results.policyrun import PolicyRun
from simqueue.results.replicated import why_undefined
from simqueue.results.result import Result
from simqueue.results.summary import summarize
from simqueue.scenario.model import Scenario
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.traffic import is_random_run
from simqueue.statistics.intervals import CONFIDENCE, check_confidence
from simqueue.statistics.selection import FIRST_STAGE, Rule, dropped, last_stage, told_apart

if TYPE_CHECKING:
    import pandas as pd

    from simqueue.outputs import Place

METRIC = "mean_ttft_ms"
ZONE = "5%"
MOST_REPLICATIONS = 1000
_SMALLEST_STAGE = 2
_STAGE_GROWTH = 8
"""Each stage adds at least an eighth of the replications made, so that many processes can share it."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One policy of a selection.

    Attributes
    ----------
    policy : str
    mean : float
        Over its own replications.
    replications : int
        How often it ran.
    difference : float
        Mean of policy minus best, over the replications that the policy ran in.
    told_apart : bool
        Whether the two differ, by a test that allows for looking after every stage and for all pairs of policies.
    """

    policy: str
    mean: float
    replications: int
    difference: float
    told_apart: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """The best policy of a scenario, and what the search took.

    Attributes
    ----------
    metric : str
    largest : bool
        Whether larger values are better.
    zone : float
        Indifference zone in the unit of the metric.
    confidence : float
        Probability that the best one found is the best, or within the zone of it.
    decided : bool
        False if the largest number of replications was reached with several policies left.
    ranking : tuple of Ranked
        The best one first; then those that stayed longer, and among equals the better ones.
    runs : int
        Runs of single policies that were made.
    equal_runs : int
        Runs that the same rule would have taken if every policy had run until the end.
    result : Result
        All runs.
    """

    metric: str
    largest: bool
    zone: float
    confidence: float
    decided: bool
    ranking: tuple[Ranked, ...]
    runs: int
    equal_runs: int
    result: Result

    @property
    def best(self) -> str:
        """Name of the best policy."""
        return self.ranking[0].policy

    @property
    def not_told_apart(self) -> tuple[str, ...]:
        """Names of the other policies that may be as good."""
        return tuple(one.policy for one in self.ranking[1:] if not one.told_apart)

    @property
    def table(self) -> pd.DataFrame:
        """One row per policy."""
        from pandas import DataFrame  # noqa: PLC0415 - pandas loads slowly, and the command prints another table

        return DataFrame(self.plain()["ranking"])

    def plain(self) -> dict[str, Any]:
        """Return plain values, as ``simqueue best --json`` prints them."""
        return {
            "metric": self.metric,
            "largest": self.largest,
            "best": self.best,
            "decided": self.decided,
            "not_told_apart": list(self.not_told_apart),
            "zone": self.zone,
            "confidence": self.confidence,
            "runs": self.runs,
            "runs_of_equal_allocation": self.equal_runs,
            "ranking": [asdict(one) for one in self.ranking],
        }

    def save(self, directory: str | Path | Place, figures: bool = False) -> list[Path]:
        """Write the tables of all runs to a folder, see `Result.save`."""
        return self.result.save(directory, figures=figures)


def best(
    scenario: Scenario | ResolvedScenario | str | Path | Mapping[str, Any],
    *,
    metric: str = METRIC,
    largest: bool | None = None,
    zone: str | float = ZONE,
    confidence: float = CONFIDENCE,
    max_replications: int = MOST_REPLICATIONS,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
    workers: Workers = None,
) -> Selection:
    """Find the best policy of a scenario with as few runs as needed.

    All policies run on the same requests. After ten replications, and after every stage of some more, policies that
    can hardly be the best are dropped and not run any further (`simqueue.statistics.selection` says how).

    Parameters
    ----------
    scenario, overrides, seed, workers
        As for `run`. `replications` and `precision` of the scenario are not used.
    metric : str
        Column of the summary.
    largest : bool, optional
        Whether larger values are better. By default the metric decides; one of which neither are better, such as
        ``gpu_busy_share``, needs an answer.
    zone : str or float
        Indifference zone: a difference that does not matter. A number in the unit of the metric, or a share such as
        ``"5%"`` of the mean that is best after ten replications.
    confidence : float
        Probability that the best one found is the best, or within the zone of it.
    max_replications : int
        If several policies are left after as many, the search ends without a decision.
    progress : callable, optional
        See `Progress`.

    Raises
    ------
    InputError
        If the scenario is wrong, has a single policy or nothing random, or if a parameter is wrong.
    RunError
        If a run fails.
    """
    chosen = as_resolved(scenario, overrides, seed)
    _check(chosen, metric, confidence, max_replications)
    share, absolute = zone_of(zone)
    with opened(workers) as where:
        search = _Search(chosen, metric, _largest(metric, largest), progress, where)
        search.up_to(FIRST_STAGE)
        leading = min(math.fsum(values) / len(values) for values in search.values.values())
        rule = Rule(len(chosen.policies), absolute if share is None else share * abs(leading), confidence)
        if rule.zone == 0:
            raise InputError(f"zone = {show(zone)}: {metric} of the best policy is 0; give a number in its unit")
        return _selection(search, rule, decided=_settled(search, rule, max_replications))


def _largest(metric: str, chosen: bool | None) -> bool:
    """Return whether larger values of a metric are better."""
    if chosen is None and not better(metric):
        raise InputError(f"metric = {metric}: say whether larger or smaller values are better (largest)")
    return better(metric) == "higher" if chosen is None else chosen


def zone_of(zone: str | float) -> tuple[float | None, float]:
    """Return an indifference zone as a share, or None and a number in the unit of the metric.

    Raises
    ------
    InputError
        If it is neither a number > 0 nor a percentage > 0 and < 100.
    """
    text = str(zone).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    relative = text.endswith("%")
    if not 0 < number < (100 if relative else math.inf):
        raise InputError(f"zone = {show(zone)}: must be a number > 0, or a percentage such as 5% that is > 0 and < 100")
    return (number / 100, 0.0) if relative else (None, number)


class _Search:
    """The replications of the policies that are left, and their values: smaller is better."""

    def __init__(
        self, scenario: ResolvedScenario, metric: str, largest: bool, progress: Progress | None, where: Executor
    ) -> None:
        self.scenario = scenario
        self.metric = metric
        self.sign = -1.0 if largest else 1.0
        self._extras = extras(scenario)
        self.left: tuple[str, ...] = scenario.policy_names
        self.values: dict[str, list[float]] = {name: [] for name in self.left}
        self.made: Sequence[Replication] = ()
        self.warm = WarmUp()
        told = None if progress is None else lambda _, done, total: progress(self._stage(total), done, total)
        self._replications = Replications(scenario, where, False, told)

    @cached_property
    def loads(self) -> RunLoads:
        """The loads of all policies, which ran in the first replication."""
        return RunLoads(self.scenario, self.made[0])

    def _stage(self, total: int) -> str:
        return f"{len(self.left)} policies, to replication {total}"

    def up_to(self, count: int) -> None:
        """Run the policies that are left until each has this many replications."""
        done = len(self.made)
        self.made = self._replications.up_to(count)
        if not done:  # the first stage decides the warm-up, which must not change with the number of replications
            self.warm = warm_up(self.scenario, self.made, self.loads)
        for run in (run for one in self.made[done:] for run in one.runs):
            self.values[run.policy].append(self.sign * self._value(run))

    def _value(self, run: PolicyRun) -> float:
        scenario, window = self.scenario, with_window(self.scenario, self.warm, run).window
        row = summarize(
            run.policy, run.replication, run.recording, scenario.slo, window, scenario.class_slos, self._extras
        )[0]
        value = row[self.metric]
        problem = why_undefined(row, self.metric, f"policy {run.policy} in replication {run.replication}")
        if problem or not isinstance(value, int | float):
            raise InputError(f"metric = {show(self.metric)}: {problem}")
        return float(value)

    def remaining(self) -> dict[str, list[float]]:
        """Return the values of the policies that are left."""
        return {name: self.values[name] for name in self.left}

    def drop(self, names: Sequence[str]) -> None:
        """Leave policies out from now on."""
        self.left = tuple(name for name in self.left if name not in names)
        self._replications.keep(self.left)


def _settled(search: _Search, rule: Rule, most: int) -> bool:
    """Drop policies until one is left; return False if several are left after the largest number of replications."""
    while True:
        search.drop(dropped(search.remaining(), rule))
        done = len(search.made)
        if len(search.left) == 1 or done >= last_stage(search.remaining(), rule):
            return True
        if done >= most:
            return False
        search.up_to(min(most, next_stage(done)))


def next_stage(replications: int) -> int:
    """Return after how many replications policies are dropped next."""
    return replications + max(_SMALLEST_STAGE, replications // _STAGE_GROWTH)


def _selection(search: _Search, rule: Rule, *, decided: bool) -> Selection:
    values, sign = search.values, search.sign
    means = {name: math.fsum(found) / len(found) for name, found in values.items()}
    winner = min(search.left, key=lambda name: means[name])
    error = (1 - rule.confidence) / math.comb(rule.alternatives, 2)
    rows = []
    for name in sorted(values, key=lambda name: (name != winner, -len(values[name]), means[name])):
        others = values[winner][: len(values[name])]
        difference = math.fsum(values[name]) / len(others) - math.fsum(others) / len(others)
        apart = name != winner and told_apart(values[name], others, error)
        # + 0.0: a zero has no sign
        rows.append(Ranked(name, sign * means[name] + 0.0, len(others), sign * difference + 0.0, apart))
    return Selection(
        metric=search.metric,
        largest=sign < 0,
        zone=rule.zone,
        confidence=rule.confidence,
        decided=decided,
        ranking=tuple(rows),
        runs=sum(map(len, values.values())),
        equal_runs=rule.alternatives * len(values[winner]),
        result=result_of(
            search.scenario, search.scenario.with_(precision=None), search.made, search.warm, search.loads
        ),
    )


def _check(scenario: ResolvedScenario, metric: str, confidence: float, max_replications: int) -> None:
    if len(scenario.policies) < 2:
        raise InputError(f"{scenario.name}: a selection needs at least two policies; the scenario has one")
    check_names(scenario.policy_names, None, [metric], numeric_columns(scenario))
    check_confidence(confidence)
    if isinstance(max_replications, bool) or not isinstance(max_replications, int) or max_replications < FIRST_STAGE:
        raise InputError(f"max_replications = {show(max_replications)}: must be a whole number >= {FIRST_STAGE}")
    if not is_random_run(scenario):
        raise InputError(
            f"{scenario.name}: nothing in the traffic is random, and no fleet draws anything, so a single run of each "
            "policy says which is best; "
            "use run or compare"
        )
