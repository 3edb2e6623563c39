"""The summary rows of a result: of each replication, and of each policy over its replications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

from simqueue.results.classes import RequestClasses
from simqueue.results.fleets import group_labels, group_of
from simqueue.results.latencies import (
    ALWAYS,
    CAPACITY,
    GOOD,
    MODEL_ERROR,
    OVERLOADED_SHARE,
    Extras,
    anything_waited,
    parsed,
)
from simqueue.results.objectives import extras_of, judged_limits
from simqueue.results.policyrun import PolicyRun
from simqueue.results.replicated import EFFECTIVE, pooled_rows, without_few
from simqueue.results.samples import ITL, Gaps, RunSamples, Samples
from simqueue.results.steadiness import STEADY, WHOLE_RUN, OfferedLoad, judged, shown, unsteady
from simqueue.results.summary import Row, Value, summarize, summarize_groups

Limits = Mapping[str, float]
_OF_POLICIES: Final = (
    *("request_class", "request_goodput", "max_itl_ms", "itl_count", "max_concurrent_requests", "idle_slot_share"),
    *("load", "binding", "overloaded", "bounded", *MODEL_ERROR, GOOD, CAPACITY, OVERLOADED_SHARE),
)
"""Columns that the row of a group does not have."""


class Summaries:
    """The rows of some runs, which are computed when they are first used.

    Parameters
    ----------
    runs : sequence of PolicyRun
    slo : mapping
        Upper bounds in milliseconds.
    class_slo : mapping
        The same for request classes with bounds of their own.
    offered : mapping of str to OfferedLoad
        Offered load of each policy.
    confidence : float
        Nominal coverage of the intervals over replications.
    percentiles : iterable of float
        Further percentiles.
    """

    def __init__(
        self,
        runs: Sequence[PolicyRun],
        slo: Limits,
        class_slo: Mapping[str, Limits],
        offered: Mapping[str, OfferedLoad],
        confidence: float,
        percentiles: Iterable[float],
    ) -> None:
        self._runs = runs
        self._slo, self._class_slo = slo, class_slo
        self._offered, self._confidence = offered, confidence
        self._percentiles = tuple(percentiles)
        self._rows_made: dict[bool, list[Row]] = {}

    @property
    def steady(self) -> bool:
        """Whether steady windows are measured, and not whole runs."""
        return any(run.window is not None for run in self._runs)

    @cached_property
    def of_replications(self) -> tuple[Row, ...]:
        """The rows of each replication."""
        hidden = {row["policy"] for row in self.of_policies if unsteady(row)}
        rows = [shown(row, hidden=row["policy"] in hidden) for row in self._rows()]
        return tuple(self._limited(row) for row in rows)

    @cached_property
    def of_policies(self) -> tuple[Row, ...]:
        """The rows of each policy; replications become means with intervals."""
        return self._over_replications()

    @cached_property
    def of_whole_runs(self) -> tuple[Row, ...]:
        """The rows of each policy, without a warm-up."""
        return self._over_replications(whole=True) if self.steady else self.of_policies

    @cached_property
    def of_groups(self) -> tuple[Row, ...]:
        """The rows of the groups of each fleet: ``group`` is their name. Replications become means with intervals."""
        rows = [row for run in self._runs for row in self._group_rows_of(run)]
        hidden = {row["policy"] for row in self.of_policies if unsteady(row)}
        if len(self._runs) > len({run.policy for run in self._runs}):
            rows = pooled_rows(rows, self._group_samples, self._confidence)
        return tuple(_of_group(shown(row, hidden=row["policy"] in hidden)) for row in rows)

    def _group_rows_of(self, run: PolicyRun) -> list[Row]:
        rows = summarize_groups(run.policy, run.replication, run.recording, run.window, self._extras)
        if run.window is None:
            return [{**row, "window": WHOLE_RUN, "warmup_s": 0.0} for row in rows]
        return [{**without_few(row), "window": STEADY, "warmup_s": run.window.start_s} for row in rows]

    def _group_samples(self, policy: Value, label: Value) -> Samples:
        runs = [
            RunSamples(run.recording, run.window, str(label), self._extras, RequestClasses(group_labels(run.recording)))
            for run in self._runs
            if run.policy == policy
        ]
        return Samples(runs, self._levels)

    def samples(self, policy: Value, request_class: Value, *, whole: bool = False) -> Samples:
        """Return the latencies behind the rows of a policy and a request class, of all replications."""
        name = None if request_class is None else str(request_class)
        runs = [
            RunSamples(run.recording, None if whole else run.window, name, self._extras, classes)
            for run, classes in zip(self._runs, self._classes, strict=True)
            if run.policy == policy
        ]
        return Samples(runs, self._levels, self._gaps[str(policy)])

    def _over_replications(self, *, whole: bool = False) -> tuple[Row, ...]:
        rows = self._rows(whole=whole)
        policies = {run.policy for run in self._runs}
        if len(self._runs) > len(policies):
            final = pooled_rows(rows, partial(self.samples, whole=whole), self._confidence)
        else:
            final = [shown(row, hidden=unsteady(row)) for row in rows]
        return tuple(self._limited(row) for row in final)

    def _limited(self, row: Row) -> Row:
        return judged_limits(row, self._slo, self._class_slo)

    def _rows(self, *, whole: bool = False) -> tuple[Row, ...]:
        if whole not in self._rows_made:
            self._rows_made[whole] = [row for run in self._runs for row in self._rows_of(run, whole=whole)]
        return tuple(dict(row) for row in self._rows_made[whole])

    def _rows_of(self, run: PolicyRun, *, whole: bool) -> list[Row]:
        window = None if whole else run.window
        rows = summarize(run.policy, run.replication, run.recording, self._slo, window, self._class_slo, self._extras)
        offered = self._offered.get(run.policy, OfferedLoad())
        if window is None:
            return judged(rows, run.signs, offered, 0.0)
        steady = judged([without_few(row) for row in rows], run.signs, offered, window.start_s)
        return [{**row, "window": STEADY} for row in steady]

    @cached_property
    def _classes(self) -> tuple[RequestClasses, ...]:
        """The request classes of each run."""
        return tuple(RequestClasses(run.recording.requests["request_class"]) for run in self._runs)

    @cached_property
    def _gaps(self) -> dict[str, Gaps]:
        """The gaps between tokens of each policy, which have no window, over all its replications."""
        names = dict.fromkeys(run.policy for run in self._runs)
        recordings = {name: [run.recording for run in self._runs if run.policy == name] for name in names}
        return {name: Gaps(found, self._levels) for name, found in recordings.items()}

    @property
    def _levels(self) -> tuple[float, ...]:
        """The percentiles of the summary."""
        return (*ALWAYS, *self._extras.percentiles)

    @cached_property
    def _extras(self) -> Extras:
        """The optional columns of the summary; all policies have the same."""
        return extras_of(
            (self._slo, *self._class_slo.values()),
            self._percentiles,
            clients=any(anything_waited(run.recording.requests) for run in self._runs),
            rushes=any(offered.rushes for offered in self._offered.values()),
            fleets=any(run.recording.fleet is not None for run in self._runs),
        )


def _of_group(row: Row) -> Row:
    """Return the row of a group with its name, and without the columns that only a whole policy has."""
    named: Row = {"policy": row["policy"], "replication": row["replication"], "group": group_of(row["request_class"])}
    return named | {name: value for name, value in row.items() if name not in named and not _of_policies(name)}


def _of_policies(name: str) -> bool:
    plain = name.removeprefix("ci_low_").removeprefix("ci_high_").removeprefix(EFFECTIVE)
    found = parsed(plain)
    return plain in _OF_POLICIES or (found is not None and found[1] == ITL)
