"""Replications that go on until a metric is known well enough for every policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simqueue.errors import InputError
from simqueue.experiment.replication import Replication
from simqueue.experiment.run_loads import RunLoads
from simqueue.experiment.warmup import WarmUp, warm_up, with_window
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.doubts import in_doubt
from simqueue.results.latencies import NO_EXTRAS
from simqueue.results.policyrun import PolicyRun
from simqueue.results.replicated import column_estimate, why_undefined
from simqueue.results.samples import RunSamples, Samples
from simqueue.results.summary import Row, summarize
from simqueue.scenario.precision import PrecisionSettings
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.intervals import Estimate
from simqueue.statistics.stopping import checkpoints, deciding, largest_width
from simqueue.statistics.verdict import majority

_MARGIN = 2.0
"""How many times as many independent values a mean must have as without a choice of the moment.

A sequence is free of doubt at first where it happens to have no very large value.
"""


def until_precise(
    up_to: Callable[[int], list[Replication]], scenario: ResolvedScenario, wanted: PrecisionSettings
) -> list[Replication]:
    """Replicate until the metric of every policy is precise at successive checkpoints, or to the largest number.

    Parameters
    ----------
    up_to : callable
        Returns the first so many replications.
    scenario : ResolvedScenario
    wanted : PrecisionSettings
    """
    sizes = checkpoints(wanted.min_replications, wanted.max_replications)
    made = up_to(sizes[0])
    known = _all_known(scenario, wanted, made, RunLoads(scenario, made[0]))
    for size in sizes[1:]:
        if all(one.precise for one in known):
            break
        before = len(made)
        made = up_to(size)
        for one in known:
            one.add(made[before:])
    return made


def precision_note(scenario: ResolvedScenario, made: Sequence[Replication], loads: RunLoads) -> tuple[str, ...]:
    """Return a warning if the wanted precision was not reached."""
    wanted = scenario.precision
    if wanted is None:
        return ()
    missed = [one for one in _all_known(scenario, wanted, made, loads) if not one.precise]
    if not missed:
        return ()
    doubtful = [one.policy for one in missed if one.doubtful]
    more = f"; the intervals of {', '.join(doubtful)} cannot be trusted yet" if doubtful else ""
    return (
        f"not enough runs: after {len(made)} replications, {wanted.metric} of "
        f"{', '.join(one.policy for one in missed)} is not known to {100 * wanted.relative:g} %{more}; increase "
        "precision.max_replications, or make the runs longer",
    )


def _all_known(
    scenario: ResolvedScenario, wanted: PrecisionSettings, made: Sequence[Replication], loads: RunLoads
) -> list[_Known]:
    warm = warm_up(scenario, made, loads)
    known = [_Known(scenario, wanted, warm, name, loads) for name in scenario.policy_names]
    for one in known:
        one.add(made)
    return known


class _Known:
    """What the replications of a policy tell about the metric of the precision: the estimate that the table shows."""

    def __init__(
        self, scenario: ResolvedScenario, wanted: PrecisionSettings, warm: WarmUp, policy: str, loads: RunLoads
    ) -> None:
        self._scenario, self._wanted, self._warm = scenario, wanted, warm
        self.policy, self._loads = policy, loads
        self._rows: list[Row] = []
        self._runs: list[PolicyRun] = []
        self._samples_of: list[RunSamples] = []
        self._overloads: list[bool | None] = []
        self._known: dict[int, bool] = {}

    def add(self, made: Sequence[Replication]) -> None:
        """Add replications, in order."""
        for run in (run for one in made for run in one.runs if run.policy == self.policy):
            measured = with_window(self._scenario, self._warm, run)
            self._runs.append(measured)
            self._samples_of.append(RunSamples(run.recording, measured.window, ALL_CLASSES, NO_EXTRAS))
            self._rows.append(self._row(measured))

    @property
    def precise(self) -> bool:
        """Whether the metric is known well enough at the last checkpoints."""
        sizes = checkpoints(self._wanted.min_replications, self._wanted.max_replications)
        deciders = deciding(sizes, len(self._runs))
        return bool(deciders) and all(map(self._precise_at, deciders))

    @property
    def doubtful(self) -> bool:
        """Whether the interval of all replications is one that cannot be trusted."""
        found = self._estimate(len(self._runs))
        return found is not None and self._in_doubt(found)

    def _precise_at(self, n: int) -> bool:
        if n not in self._known:
            found = self._estimate(n)
            width = None if found is None else found.relative
            narrow = width is not None and width <= largest_width(self._wanted.relative)
            self._known[n] = narrow and found is not None and not self._in_doubt(found)
        return self._known[n]

    def _estimate(self, n: int) -> Estimate | None:
        return column_estimate(self._wanted.metric, self._rows[:n], self._samples(n), self._wanted.confidence)

    def _in_doubt(self, found: Estimate) -> bool:
        """Whether the result would warn about an estimate: its window is steady, and its policy is not overloaded."""
        n = found.n
        if any(run.window is None for run in self._runs[:n]):
            return False
        if not in_doubt(self._wanted.metric, found.value, self._samples(n), _MARGIN):
            return False
        self._overloads += [
            run.signs.unsteady(self._loads.offered[self.policy].law) for run in self._runs[len(self._overloads) : n]
        ]
        return majority(self._overloads[:n]) is not True

    def _samples(self, n: int) -> Samples:
        return Samples(self._samples_of[:n])

    def _row(self, run: PolicyRun) -> Row:
        scenario, metric = self._scenario, self._wanted.metric
        row = summarize(run.policy, run.replication, run.recording, scenario.slo, run.window, scenario.class_slos)[0]
        text = why_undefined(row, metric, f"policy {run.policy} in replication {run.replication}")
        if text:
            raise InputError(text, "precision", "metric", value=metric)
        return row
