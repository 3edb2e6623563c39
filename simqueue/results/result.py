"""The result of a scenario: the runs of its policies, and every view of them that people ask for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simqueue import figures
from simqueue.errors import InputError
from simqueue.request import Status
from simqueue.results import export, store, tables
from simqueue.results.metrics import has_status
from simqueue.results.replicated import pooled_rows
from simqueue.results.steadiness import STEADY, OfferedLoad, judged, shown, too_light
from simqueue.results.summary import ALL_CLASSES, Row, check_slo, summarize
from simqueue.statistics.intervals import CONFIDENCE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from simqueue.simulation.recording import Recording


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """What one policy left behind in one replication."""

    policy: str
    replication: int
    recording: Recording


class Result:
    """Everything known after a run. Tables are made when first asked for.

    Parameters
    ----------
    scenario : mapping
        The resolved scenario, of plain JSON values.
    version : str
        The version of this package that made the result.
    seed : int
    runs : sequence of PolicyRun
        In the order in which policies are to be shown.
    slo : mapping, optional
        Upper bounds in milliseconds, any of ttft_ms, tpot_ms, e2el_ms.
    class_slo : mapping, optional
        The same for classes of requests that have their own.
    warmup_s : float
        Requests that arrive before it are left out of latency statistics, throughputs and goodput.
    warnings : iterable of str
        Lines about the scenario as a whole; those of the recordings are added by `Result` itself.
    offered : mapping of str to OfferedLoad, optional
        What each policy is asked for against what it can carry.
    confidence : float
        Nominal coverage of the intervals over replications.

    Raises
    ------
    InputError
        If `slo` names something else.
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
        warmup_s: float = 0.0,
        warnings: Iterable[str] = (),
        offered: Mapping[str, OfferedLoad] | None = None,
        confidence: float = CONFIDENCE,
    ) -> None:
        check_slo(slo)
        self.scenario = dict(scenario)
        self.version = version
        self.seed = seed
        self.runs = tuple(runs)
        self.slo: dict[str, float] = dict(slo or {})
        self.class_slo = dict(class_slo or {})
        self.warmup_s = warmup_s
        self.confidence = confidence
        self._own_warnings = tuple(warnings)
        self._offered = dict(offered or {})
        self._rows_by_warmup: dict[float, list[Row]] = {}

    def __repr__(self) -> str:
        return f"Result(policies={list(self.policies)}, seed={self.seed}, version={self.version!r})"

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in order."""
        return tuple(dict.fromkeys(run.policy for run in self.runs))

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request and policy."""
        made = [tables.requests_table(run.recording, run.policy, run.replication) for run in self.runs]
        return tables.stacked(made, tables.REQUEST_TYPES)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a step of the GPU, equal steps in a row merged."""
        made = [tables.steps_table(run.recording, run.policy, run.replication) for run in self.runs]
        return tables.stacked(made, tables.STEP_TYPES)

    @property
    def replicated(self) -> bool:
        """Whether any policy ran more than once."""
        return len(self.runs) > len(self.policies)

    @cached_property
    def replication_rows(self) -> tuple[Row, ...]:
        """The summary of each replication by itself, as dicts of plain values, None where undefined."""
        overloaded = {row["policy"] for row in self.summary_rows if row["overloaded"]}
        return tuple(shown(row, overloaded=row["policy"] in overloaded) for row in self._rows(self.warmup_s))

    @cached_property
    def summary_rows(self) -> tuple[Row, ...]:
        """The summary as dicts of plain values, None where undefined; replications as means with intervals."""
        return self._summarized(self.warmup_s)

    @cached_property
    def whole_run_rows(self) -> tuple[Row, ...]:
        """The summary without a warm-up: every request of the run."""
        return self._summarized(0.0) if self.warmup_s else self.summary_rows

    @cached_property
    def replications(self) -> pd.DataFrame:
        """One row a policy and replication, and one more a request class where there are any."""
        return tables.summary_table(self.replication_rows)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a policy, and one more a request class where there are any."""
        return tables.summary_table(self.summary_rows)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """One line each, without repetition: the scenario's, then those of each run."""
        found = list(self._own_warnings)
        overall = [row for row in self.replication_rows if row["request_class"] == ALL_CLASSES]
        for run, row in zip(self.runs, overall, strict=True):
            where = f"{run.policy}, replication {run.replication}" if self.replicated else run.policy
            found += [f"{where}: {line}" for line in (*run.recording.warnings, *self._nothing_measured(row))]
        found += [f"{name}: {line}" for name in self.policies if (line := self._rejections(name))]
        found += [f"{row['policy']}: {line}" for row in self.summary_rows for line in self._overload(row)]
        light = too_light([run.recording for run in self.runs])
        return tuple(dict.fromkeys([*found, *([light] if light else [])]))

    def _summarized(self, warmup_s: float) -> tuple[Row, ...]:
        rows = self._rows(warmup_s)
        if self.replicated:
            return tuple(pooled_rows(rows, self.confidence))
        return tuple(shown(row, overloaded=bool(row["overloaded"])) for row in rows)

    def _rows(self, warmup_s: float) -> tuple[Row, ...]:
        if warmup_s not in self._rows_by_warmup:
            self._rows_by_warmup[warmup_s] = [row for run in self.runs for row in self._rows_of(run, warmup_s)]
        return tuple(dict(row) for row in self._rows_by_warmup[warmup_s])

    def _rows_of(self, run: PolicyRun, warmup_s: float) -> list[Row]:
        rows = summarize(run.policy, run.replication, run.recording, self.slo, warmup_s, self.class_slo)
        return judged(rows, run.recording, self._offered.get(run.policy, OfferedLoad()), warmup_s)

    def _rejections(self, policy: str) -> str | None:
        """Return how many requests of a policy were refused, and why the first of them was."""
        runs = [run.recording.requests for run in self.runs if run.policy == policy]
        refused = [has_status(requests, Status.REJECTED) for requests in runs]
        count = sum(int(mask.sum()) for mask in refused)
        if not count:
            return None
        first = next(
            requests["reject_reason"][mask][0] for requests, mask in zip(runs, refused, strict=True) if mask.any()
        )
        total = sum(len(mask) for mask in refused)
        return f"{count} of {total} requests rejected" + (f", the first: {first}" if first else "")

    def _overload(self, row: Row) -> list[str]:
        if row["request_class"] != ALL_CLASSES or not row["overloaded"] or row["rejected"] == row["n_requests"]:
            return []  # where all are refused there is nothing to be said about load
        load = row["load"]
        asked = "its queue grew throughout"
        if isinstance(load, float) and load >= 1:
            asked = f"offered load {load:.2f} of its capacity"
        elif isinstance(load, float):
            asked += f", though its load is estimated at {load:.2f} of its capacity"
        shown = "; there is no steady state to show" if row["window"] == STEADY else ""
        return [f"overloaded, {asked}: latencies grow with the length of the run{shown}"]

    @property
    def blocks_total(self) -> int | None:
        """Size of the first policy's KV pool in blocks; None without a run."""
        return int(self.runs[0].recording.blocks_total) if self.runs else None

    def last_token_s(self, policy: str) -> NDArray[np.float64] | None:
        """Return when each request of the policy's first replication emitted its last token, NaN if it never did."""
        for run in self.runs:
            if run.policy == policy:
                return np.asarray(run.recording.requests["last_token_s"])
        return None

    def plot_cdf(self, metric: str, ax: Axes | None = None) -> Axes:
        """Draw the distribution of a latency over finished requests, one line a policy.

        Parameters
        ----------
        metric : {"ttft_ms", "tpot_ms", "e2el_ms"}
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, found as ``.figure`` of what is returned.

        Raises
        ------
        InputError
            If there is no such metric.
        """
        return figures.cdf_axes(self, metric, ax)

    def to_json(self, requests: bool = True, indent: int | None = None) -> str:
        """Return one strict JSON object: scenario, version, seed, summary, requests (if asked), warnings.

        With replications there is `replications`, the summary of each, and with a warm-up `summary_whole_run`.
        What is undefined is null. Raises ValueError for a number that JSON does not know.
        """
        content: dict[str, Any] = {
            "scenario": self.scenario,
            "version": self.version,
            "seed": self.seed,
            "summary": list(self.summary_rows),
        }
        if self.replicated:
            content["replications"] = list(self.replication_rows)
        if self.warmup_s:
            content["summary_whole_run"] = list(self.whole_run_rows)
        if requests:
            content["requests"] = tables.records(self.requests)
        content["warnings"] = list(self.warnings)
        return json.dumps(content, allow_nan=False, ensure_ascii=False, indent=indent)

    def save(self, directory: str | Path, figures: bool = True) -> list[Path]:
        """Write tables, summary, resolved scenario and figures to a folder and return their paths.

        See `simqueue.results.store.save` for what is written and what may be replaced.
        """
        return store.save(self, Path(directory), draw=figures)

    def export_trace(self, path: str | Path, policy: str | None = None, replication: int = 0) -> int:
        """Write the requests of one run as a trace that plays the same run again, and return their number.

        Parameters
        ----------
        path : str or Path
            A file of JSON lines; play it with ``trace: {format: jsonl, path: ..., origin: file}``.
        policy : str, optional
            Whose run; the first by default. Policies see the same requests unless users, sessions, timeouts or
            max_concurrency make these depend on the answers.
        replication : int

        Raises
        ------
        InputError
            If there is no such run, or the file cannot be written.
        """
        wanted = self.policies[0] if policy is None else policy
        for run in self.runs:
            if run.policy == wanted and run.replication == replication:
                return export.export_trace(run.recording, Path(path))
        raise InputError(
            f"there is no run of policy '{wanted}', replication {replication}; policies: {', '.join(self.policies)}"
        )

    def _nothing_measured(self, row: Row) -> list[str]:
        n, excluded = row["n_requests"], row["warmup_excluded"]
        if row["measured_requests"] or not n:
            return []
        if excluded == n:
            return [f"all {n} requests arrived before warmup_s = {self.warmup_s:g}: nothing is measured"]
        if row["completed"]:
            return ["no request that arrived after the warm-up finished: its latencies are undefined"]
        return [f"none of {n} requests finished: latencies are undefined"]
