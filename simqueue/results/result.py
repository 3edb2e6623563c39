"""The result of a scenario: the runs of its policies with their tables, summary, warnings, figures and files."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.outputs import Place, reserved_file
from simqueue.results import export, notices, store, tables
from simqueue.results.classes import ALL_CLASSES, RequestClasses
from simqueue.results.display import Displayed
from simqueue.results.doubts import doubts
from simqueue.results.grouping import Warned, grouped
from simqueue.results.latencies import ALWAYS, Extras, anything_waited
from simqueue.results.objectives import extras_of, judged_limits
from simqueue.results.onerun import BATCH_MEANS, OneRunInterval, one_run_intervals
from simqueue.results.replicated import missing_values, pooled_rows, without_few
from simqueue.results.samples import Gaps, RunSamples, Samples
from simqueue.results.steadiness import STEADY, OfferedLoad, arrives_openly, judged, shown, too_light
from simqueue.results.summary import Row, Value, check_slo, summarize
from simqueue.results.window import Window
from simqueue.statistics.gapcurve import gap_curve
from simqueue.statistics.intervals import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from simqueue.simulation.recording import Recording


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """The recording of one replication of a policy."""

    policy: str
    replication: int
    recording: Recording
    window: Window | None = None
    """The steady part after a warm-up; None: the whole run is measured."""

    @property
    def warmup_s(self) -> float:
        """End of the warm-up."""
        return 0.0 if self.window is None else self.window.start_s


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
        self._offered = dict(offered or {})
        self._rows_made: dict[bool, list[Row]] = {}

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

    @property
    def warmup_s(self) -> float:
        """End of the warm-up, the mean over all runs; 0 if nothing is cut."""
        return math.fsum(run.warmup_s for run in self.runs) / len(self.runs) if self.runs else 0.0

    @property
    def _steady(self) -> bool:
        """Whether steady windows are measured, and not whole runs."""
        return any(run.window is not None for run in self.runs)

    @property
    def replicated(self) -> bool:
        """Whether any policy ran more than once."""
        return len(self.runs) > len(self.policies)

    @cached_property
    def replication_rows(self) -> tuple[Row, ...]:
        """The summary of each replication, as dicts of plain values, None if undefined."""
        overloaded = {row["policy"] for row in self.summary_rows if row["overloaded"] is True}
        rows = [shown(row, overloaded=row["policy"] in overloaded) for row in self._rows()]
        return tuple(judged_limits(row, self.slo, self.class_slo) for row in rows)

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

    @cached_property
    def summary_rows(self) -> tuple[Row, ...]:
        """The summary as dicts of plain values, None if undefined; replications become means with intervals."""
        return self._summarized()

    @cached_property
    def whole_run_rows(self) -> tuple[Row, ...]:
        """The summary of all requests, without a warm-up."""
        return self._summarized(whole=True) if self._steady else self.summary_rows

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """One line per warning: those of the scenario, of its runs, of its policies. Equal ones name all policies."""
        light = too_light([run.recording for run in self.runs])
        own = tuple(dict.fromkeys(self._own_warnings))
        general = [line for line in own if self._about(line) is None]
        found = [*filter(None, map(self._about, own)), *self._run_warnings(), *self._policy_warnings()]
        counts = Counter(run.policy for run in self.runs)
        return (*general, *grouped(found, counts), *([light] if light else []))

    def _about(self, line: str) -> Warned | None:
        """Return a line of the scenario that begins with the name of a policy; None for others."""
        policy, separator, text = line.partition(": ")
        return Warned(policy, text) if separator and policy in self.policies else None

    def _run_warnings(self) -> Iterator[Warned]:
        overall = [row for row in self.replication_rows if row["request_class"] == ALL_CLASSES]
        for run, row in zip(self.runs, overall, strict=True):
            told = (*notices.nothing_measured(row, run.warmup_s), *notices.cut_off(run.recording.requests, run.window))
            for line in (*run.recording.warnings, *told):
                yield Warned(run.policy, line, run.replication)

    def _policy_warnings(self) -> Iterator[Warned]:
        for name in self.policies:
            requests = [run.recording.requests for run in self.runs if run.policy == name]
            yield from (Warned(name, line) for line in notices.rejections(requests))
        for row in self.summary_rows:
            yield from (Warned(str(row["policy"]), line) for line in (*notices.overload(row), *notices.rush(row)))
            if row["request_class"] == ALL_CLASSES and self.replicated:
                told = doubts(row, self._samples(row["policy"], ALL_CLASSES))
                yield from (Warned(str(row["policy"]), line) for line in told)
        openly = {run.policy for run in self.runs if arrives_openly(run.recording)}
        for row in self.summary_rows:
            if row["policy"] in openly:
                yield from (Warned(str(row["policy"]), line) for line in notices.unclear(row))

    def _summarized(self, *, whole: bool = False) -> tuple[Row, ...]:
        rows = self._rows(whole=whole)
        if self.replicated:
            final = pooled_rows(rows, partial(self._samples, whole=whole), self.confidence)
        else:
            final = [shown(row, overloaded=row["overloaded"] is True) for row in rows]
        return tuple(judged_limits(row, self.slo, self.class_slo) for row in final)

    def _samples(self, policy: Value, request_class: Value, *, whole: bool = False) -> Samples:
        """Return the latencies behind the rows of a policy and a request class, of all replications."""
        name = None if request_class is None else str(request_class)
        runs = [
            RunSamples(run.recording, None if whole else run.window, name, self._extras, classes)
            for run, classes in zip(self.runs, self._classes, strict=True)
            if run.policy == policy
        ]
        return Samples(runs, self._levels, self._gaps[str(policy)])

    @cached_property
    def _classes(self) -> tuple[RequestClasses, ...]:
        """The request classes of each run."""
        return tuple(RequestClasses(run.recording.requests["request_class"]) for run in self.runs)

    @cached_property
    def _gaps(self) -> dict[str, Gaps]:
        """The gaps between tokens of each policy, which have no window, over all its replications."""
        recordings = {name: [run.recording for run in self.runs if run.policy == name] for name in self.policies}
        return {name: Gaps(found, self._levels) for name, found in recordings.items()}

    @property
    def _levels(self) -> tuple[float, ...]:
        """The percentiles of the summary."""
        return (*ALWAYS, *self._extras.percentiles)

    def _rows(self, *, whole: bool = False) -> tuple[Row, ...]:
        if whole not in self._rows_made:
            self._rows_made[whole] = [row for run in self.runs for row in self._rows_of(run, whole=whole)]
        return tuple(dict(row) for row in self._rows_made[whole])

    @cached_property
    def _extras(self) -> Extras:
        """The optional columns of the summary; all policies have the same."""
        limits = (self.slo, *self.class_slo.values())
        chosen = (self.scenario.get("summary") or {}).get("percentiles") or ()
        return extras_of(
            limits,
            chosen,
            clients=any(anything_waited(run.recording.requests) for run in self.runs),
            rushes=any(offered.rushes for offered in self._offered.values()),
        )

    def _rows_of(self, run: PolicyRun, *, whole: bool) -> list[Row]:
        window = None if whole else run.window
        rows = summarize(run.policy, run.replication, run.recording, self.slo, window, self.class_slo, self._extras)
        offered = self._offered.get(run.policy, OfferedLoad())
        if window is None:
            return judged(rows, run.recording, offered, 0.0)
        steady = judged([without_few(row) for row in rows], run.recording, offered, window.start_s)
        return [{**row, "window": STEADY} for row in steady]

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
        `warnings`; with replications also `replications`, their summaries, and with a warm-up `summary_whole_run`.
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
        if self._steady:
            content["summary_whole_run"] = list(self.whole_run_rows)
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
