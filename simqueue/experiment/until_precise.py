"""Replications that go on until a metric is known well enough for every policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
from simqueue.statistics.estimate import Estimate
from simqueue.statistics.stopping import largest_width, look_ahead, precise_at
from simqueue.statistics.verdict import majority


def until_precise(
    up_to: Callable[[int], list[Replication]], scenario: ResolvedScenario, wanted: PrecisionSettings
) -> list[Replication]:
    """Replicate until the metric of every policy is precise for the whole look-ahead, or to the largest number.

    Parameters
    ----------
    up_to : callable
        Returns the first so many replications.
    scenario : ResolvedScenario
    wanted : PrecisionSettings
    """
    start = min(wanted.max_replications, wanted.min_replications + look_ahead(wanted.min_replications))
    made = up_to(start)
    known = _all_known(scenario, wanted, made, RunLoads(scenario, made[0]))
    while True:
        firsts = [one.precise_at() for one in known.values()]
        precise = [first for first in firsts if first is not None]
        if len(precise) == len(firsts):
            return made[: min(wanted.max_replications, max(first + look_ahead(first) for first in precise))]
        before = len(made)
        if before >= wanted.max_replications:
            return made
        made = up_to(min(wanted.max_replications, before + max(5, before // 2)))
        for name, one in known.items():
            one.add(run for replication in made[before:] for run in replication.runs if run.policy == name)


def precision_note(scenario: ResolvedScenario, made: Sequence[Replication], loads: RunLoads) -> tuple[str, ...]:
    """Return a warning if the wanted precision was not reached."""
    wanted = scenario.precision
    if wanted is None:
        return ()
    known = _all_known(scenario, wanted, made, loads)
    missed = {name: one for name, one in known.items() if one.precise_at() is None}
    if not missed:
        return ()
    doubtful = [name for name, one in missed.items() if one.doubtful]
    more = f"; the intervals of {', '.join(doubtful)} cannot be trusted yet" if doubtful else ""
    return (
        f"not enough runs: after {len(made)} replications, {wanted.metric} of {', '.join(missed)} is not known to "
        f"{100 * wanted.relative:g} %{more}; increase precision.max_replications, or make the runs longer",
    )


def _all_known(
    scenario: ResolvedScenario, wanted: PrecisionSettings, made: Sequence[Replication], loads: RunLoads
) -> dict[str, _Known]:
    warm = warm_up(scenario, made, loads)
    known = {name: _Known(scenario, wanted, warm, name, loads) for name in scenario.policy_names}
    for name, one in known.items():
        one.add(run for replication in made for run in replication.runs if run.policy == name)
    return known


class _Known:
    """What the replications of a policy tell about the metric of the precision: the estimate that the table shows."""

    def __init__(
        self, scenario: ResolvedScenario, wanted: PrecisionSettings, warm: WarmUp, policy: str, loads: RunLoads
    ) -> None:
        self._scenario, self._wanted, self._warm = scenario, wanted, warm
        self._policy, self._loads = policy, loads
        self._rows: list[Row] = []
        self._runs: list[PolicyRun] = []
        self._samples_of: list[RunSamples] = []
        self._overloads: list[bool | None] = []
        self._widths: dict[int, float | None] = {}

    def add(self, runs: Iterable[PolicyRun]) -> None:
        """Add replications, in order."""
        for run in runs:
            measured = with_window(self._scenario, self._warm, run)
            self._runs.append(measured)
            self._samples_of.append(RunSamples(run.recording, measured.window, ALL_CLASSES, NO_EXTRAS))
            self._rows.append(self._row(measured))

    def precise_at(self) -> int | None:
        """Return the number of replications at which the rule stops; None if it does not yet."""
        wanted = self._wanted
        return precise_at(self._width, len(self._rows), largest_width(wanted.relative), least=wanted.min_replications)

    @property
    def doubtful(self) -> bool:
        """Whether the interval of all replications is one that cannot be trusted."""
        found = self._estimate(len(self._runs))
        return found is not None and self._in_doubt(found)

    def _width(self, n: int) -> float | None:
        if n not in self._widths:
            found = self._estimate(n)
            width = None if found is None else found.relative
            narrow = width is not None and width <= largest_width(self._wanted.relative)
            self._widths[n] = None if narrow and found is not None and self._in_doubt(found) else width
        return self._widths[n]

    def _estimate(self, n: int) -> Estimate | None:
        return column_estimate(self._wanted.metric, self._rows[:n], self._samples(n), self._wanted.confidence)

    def _in_doubt(self, found: Estimate) -> bool:
        """Whether the result would warn about an estimate: its window is steady, and its policy is not overloaded."""
        n = found.n
        if any(run.window is None for run in self._runs[:n]):
            return False
        if not in_doubt(self._wanted.metric, found.value, self._samples(n)):
            return False
        self._overloads += [
            run.signs.unsteady(self._loads.offered[self._policy].law) for run in self._runs[len(self._overloads) : n]
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
