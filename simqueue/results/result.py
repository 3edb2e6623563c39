"""The result of a scenario: the runs of its policies with their tables, summary, warnings, figures and files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.outputs import Place, reserved_file
from simqueue.results import export, fleettables, store, tables
from simqueue.results.cautions import cautions
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.display import Displayed
from simqueue.results.objectives import judged_limits
from simqueue.results.onerun import BATCH_MEANS, OneRunInterval, one_run_intervals
from simqueue.results.policyrun import PolicyRun
from simqueue.results.replicated import missing_values
from simqueue.results.steadiness import OfferedLoad
from simqueue.results.summaries import Summaries
from simqueue.results.summary import Row, check_slo
from simqueue.results.widened import Widening
from simqueue.statistics.gapcurve import gap_curve
from simqueue.statistics.intervals import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

_FROM_SUMMARY = ("summary", "warnings")
"""Attributes that are computed from the rows of the summary, once."""


class Result(Displayed):
    """The result of a scenario. Tables are computed when they are first used.

    Parameters
    ----------
    scenario : mapping
        The resolved scenario, of plain JSON values: a scenario again, with every value filled in.
    version : str
        Version of the package that made the result.
    seed : int
    runs : sequence of PolicyRun
        In the order in which policies are shown.
    slo : mapping, optional
        Upper bounds in milliseconds, see `simqueue.workload.slo`.
    class_slo : mapping, optional
        The same for request classes with bounds of their own.
    warnings : iterable of str
        Warnings about the scenario as a whole; `Result` adds those about its runs.
    offered : mapping of str to OfferedLoad, optional
        Offered load of each policy.
    confidence : float
        Nominal coverage of the intervals over replications.
    origins : mapping of str to str, optional
        Where each value of the scenario comes from, by its dotted path.
    base_dir : Path
        Where relative paths of the scenario start.

    Raises
    ------
    InputError
        If `slo` has an unknown key.
    """

    def __init__(
        self,
        scenario: Mapping[str, Any],
        version: str,
        seed: int,
        runs: Sequence[PolicyRun],
        *,
        slo: Mapping[str, float] | None = None,
        class_slo: Mapping[str, Mapping[str, float]] | None = None,
        warnings: Iterable[str] = (),
        offered: Mapping[str, OfferedLoad] | None = None,
        confidence: float = CONFIDENCE,
        origins: Mapping[str, str] | None = None,
        base_dir: Path = Path(),
    ) -> None:
        check_slo(slo)
        self.scenario = dict(scenario)
        self.version = version
        self.seed = seed
        self.runs = tuple(runs)
        self.slo: dict[str, float] = dict(slo or {})
        self.class_slo = dict(class_slo or {})
        self.confidence = confidence
        self.origins = dict(origins or {})
        self.base_dir = base_dir
        self._own_warnings = tuple(warnings)
        self._widening: Widening | None = None
        chosen = (self.scenario.get("summary") or {}).get("percentiles") or ()
        self._summaries = Summaries(self.runs, self.slo, self.class_slo, dict(offered or {}), confidence, chosen)

    def widened(self, by: Widening) -> Result:
        """Return the same result with wider intervals in its summary."""
        made = copy(self)
        for name in _FROM_SUMMARY:
            made.__dict__.pop(name, None)
        made._widening = by
        return made

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in order."""
        return tuple(dict.fromkeys(run.policy for run in self.runs))

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row per request and policy."""
        made = [tables.requests_table(run.recording, run.policy, run.replication) for run in self.runs]
        return tables.stacked(made, tables.REQUEST_TYPES)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per step of the GPU; consecutive equal steps are merged."""
        made = [tables.steps_table(run.recording, run.policy, run.replication) for run in self.runs]
        return tables.stacked(made, tables.STEP_TYPES)

    @cached_property
    def replicas(self) -> pd.DataFrame:
        """One row per replica of each run of a fleet; empty without fleets."""
        return fleettables.fleet_table("replicas", self.runs)

    @cached_property
    def lives(self) -> pd.DataFrame:
        """One row per change of the state of a replica; empty without fleets."""
        return fleettables.fleet_table("lives", self.runs)

    @cached_property
    def stays(self) -> pd.DataFrame:
        """One row per stay of a request at a replica that failed; empty without fleets."""
        return fleettables.fleet_table("stays", self.runs)

    @property
    def warmup_s(self) -> float:
        """End of the warm-up, the mean over all runs; 0 if nothing is cut."""
        return math.fsum(run.warmup_s for run in self.runs) / len(self.runs) if self.runs else 0.0

    @property
    def replicated(self) -> bool:
        """Whether any policy ran more than once."""
        return len(self.runs) > len(self.policies)

    @property
    def replication_rows(self) -> tuple[Row, ...]:
        """The summary of each replication, as dicts of plain values, None if undefined."""
        return self._summaries.of_replications

    @property
    def summary_rows(self) -> tuple[Row, ...]:
        """The summary as dicts of plain values, None if undefined; replications become means with intervals."""
        rows, by = self._summaries.of_policies, self._widening
        return rows if by is None else tuple(judged_limits(row, self.slo, self.class_slo) for row in by.applied(rows))

    @property
    def group_rows(self) -> tuple[Row, ...]:
        """The rows of the groups of each fleet, as dicts of plain values; empty without fleets."""
        return self._summaries.of_groups

    @property
    def whole_run_rows(self) -> tuple[Row, ...]:
        """The summary of all requests, without a warm-up."""
        return self._summaries.of_whole_runs

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """One line per warning: those of the scenario, of its runs, of its policies. Equal ones name all policies."""
        rows, by = self._summaries.of_policies, self._widening
        told = () if by is None else [f"{policy}: {line}" for policy, line in by.undefined(rows)]
        return cautions(self.runs, self._summaries, (*self._own_warnings, *told))

    def rows_of(self, policy: str) -> list[Row]:
        """Return the rows of all requests of a policy, one per replication in order."""
        return [row for row in self.replication_rows if row["policy"] == policy and row["request_class"] == ALL_CLASSES]

    def values(self, policy: str, metric: str) -> list[float | None]:
        """Return a column for all requests of a policy, one value per replication in order.

        None if it is undefined, and for a percentile with too few values for one to lie beyond it.
        """
        return [
            float(value)
            if isinstance(value := row.get(metric), int | float) and not missing_values(row, metric)
            else None
            for row in self.rows_of(policy)
        ]

    @property
    def blocks_total(self) -> int | None:
        """Size of the first policy's KV pool in blocks; None without a run."""
        return int(self.runs[0].recording.blocks_total) if self.runs else None

    def gap_curve(self, policy: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distribution of the time between tokens, over all replications of the policy.

        Returns
        -------
        values_ms, shares : arrays of the same shape
            Values in ascending order, and the share of gaps that are not above each; both are empty without gaps.
        """
        tables = [run.recording.gaps for run in self.runs if run.policy == policy]
        return gap_curve(
            lambda: (
                (1000 * part["gap_s"], part["tokens"]) for table in tables for part in table.parts("gap_s", "tokens")
            )
        )

    def last_token_s(self, policy: str) -> NDArray[np.float64] | None:
        """Return when each request of the policy's first replication emitted its last token, NaN if it never did."""
        for run in self.runs:
            if run.policy == policy:
                return np.asarray(run.recording.requests["last_token_s"])
        return None

    def one_run_intervals(self, method: str = BATCH_MEANS, policy: str | None = None) -> list[OneRunInterval]:
        """Return intervals of each policy's single run, or why there are none; see `simqueue.results.onerun`.

        Parameters
        ----------
        method : str
            ``batch-means``, or ``regenerative`` (of means only).
        policy : str, optional
            Only this one.

        Raises
        ------
        InputError
            If there are replications, whose intervals are better, or a name is unknown.
        """
        return one_run_intervals(self, method, policy)

    def to_json(self, requests: bool = True, indent: int | None = None, intervals: str | None = None) -> str:
        """Return the result as one JSON object.

        Its keys are `scenario`, `origins` (of its values), `version`, `seed`, `summary`, `requests` (optional) and
        `warnings`; with replications also `replications`, their summaries, with a warm-up `summary_whole_run`, and with
        fleets `groups`.
        Undefined values are null.

        Parameters
        ----------
        requests : bool
            Whether to include the table of requests.
        indent : int, optional
            As in `json.dumps`.
        intervals : str, optional
            A method of `one_run_intervals`, which are then included as `one_run_intervals`.

        Raises
        ------
        ValueError
            If a number is infinite or NaN, which JSON does not have.
        """
        content: dict[str, Any] = {
            "scenario": self.scenario,
            "origins": self.origins,
            "version": self.version,
            "seed": self.seed,
            "summary": list(self.summary_rows),
        }
        if self.replicated:
            content["replications"] = list(self.replication_rows)
        if self._summaries.steady:
            content["summary_whole_run"] = list(self.whole_run_rows)
        if self.group_rows:
            content["groups"] = list(self.group_rows)
        if intervals is not None:
            content["one_run_intervals"] = [asdict(found) for found in self.one_run_intervals(intervals)]
        if requests:
            content["requests"] = tables.records(self.requests)
        content["warnings"] = list(self.warnings)
        return json.dumps(content, allow_nan=False, ensure_ascii=False, indent=indent)

    def save(self, directory: str | Path | Place, figures: bool = True) -> list[Path]:
        """Write tables, summary, resolved scenario and figures to a folder and return the paths of the files.

        `simqueue.results.store.save` lists the files, and the folders that can be replaced.
        """
        return store.save(self, directory, draw=figures)

    def export_trace(self, path: str | Path | Place, policy: str | None = None, replication: int = 0) -> int:
        """Write the requests of one run as a trace that reproduces the run, and return their number.

        Parameters
        ----------
        path : str, Path or Place
            A file of JSON lines, or one that is reserved already. A scenario uses it with
            ``trace: {format: jsonl, path: ..., origin: file}``.
        policy : str, optional
            By default the first. All policies see the same requests, unless users, sessions, timeouts or
            `max_concurrency` make arrivals depend on responses.
        replication : int

        Raises
        ------
        InputError
            If there is no such run or the file cannot be written.
        RunError
            If writing fails; an earlier file is then unchanged.
        """
        wanted = policy or next(iter(self.policies), "")
        for run in self.runs:
            if run.policy == wanted and run.replication == replication:
                with reserved_file(path) as place:
                    return export.export_trace(run.recording, place)
        if wanted not in self.policies:
            raise InputError(unknown("policy", wanted, self.policies))
        known = [str(run.replication) for run in self.runs if run.policy == wanted]
        raise InputError(f"policy '{wanted}' has no replication {replication}; known: {', '.join(known)}")
