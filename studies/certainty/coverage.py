"""How often 95 % intervals of steady statistics contain the true value, and how often there is a warning instead."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from simqueue import __version__
from simqueue.execution import executor, in_order
from simqueue.experiment.replication import Replication
from simqueue.experiment.run_loads import RunLoads
from simqueue.experiment.until_precise import precision_note, until_precise
from simqueue.experiment.warmup import warm_up, with_windows
from simqueue.results.policyrun import PolicyRun
from simqueue.results.result import Result
from simqueue.scenario import from_mapping
from simqueue.scenario.precision import PrecisionSettings
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.simulation.recording import KeptTable, Recording
from simqueue.statistics.estimate import estimate
from simqueue.statistics.intervals import mean_interval
from studies.certainty.batching import TRAFFIC, Floats, Traffic

LOADS: Final = (0.6, 0.9)
GROUP: Final = 10
"""Replications of an experiment."""
METRICS: Final = {
    "mean TTFT": "mean_ttft_ms",
    "p99 TTFT": "p99_ttft_ms",
    "throughput": "request_throughput",
    "goodput": "request_goodput",
}
PRECISION: Final = {"metric": "mean_ttft_ms", "relative": 0.1}
TRUTH_RUNS, TRUTH_REQUESTS, _TRUTH_CUT = 300, 20_000, 4_000
_GOOD_SHARE: Final = 0.8
_PATIENCE: Final = {0.9: 2}
"""Load -> if so many sequences do not reach the precision and none has, there are no more."""
_ABOUT_ALL: Final = ("too few for a steady state", "every policy is overloaded and has no steady part")
"""Warnings that are about every value of a steady state."""

Times = tuple[Floats, Floats, Floats]
"""Arrivals, first tokens and departures of a run, in seconds."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run for a cell.

    Attributes
    ----------
    runs : int
        Runs of the experiments.
    sequences, sequence_runs : int
        Most sequences of replications until `precision` is reached, and most runs of them together.
    """

    runs: int
    sequences: int
    sequence_runs: int


SIZES: Final = {500: Size(1500, 60, 12_000), 5000: Size(2000, 40, 3000)}
"""Requests of a run -> what is run."""


@dataclass(frozen=True, slots=True)
class Truth:
    """True values of a workload at a load: TTFT in ms, rates per second; the limit is met by 80 % of the requests.

    Attributes
    ----------
    mean_error_ms : float
        Standard error of the mean TTFT, 0 if it is exact.
    """

    mean_ttft_ms: float
    mean_error_ms: float
    p99_ttft_ms: float
    request_throughput: float
    limit_ms: float

    @property
    def request_goodput(self) -> float:
        """Rate of requests within the limit."""
        return _GOOD_SHARE * self.request_throughput


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the grid: shares of its experiments.

    Attributes
    ----------
    workload, load, requests
        What was run.
    truth : Truth
    before : mapping of metric to float
        Coverage by the earlier rules: a common cut, means of percentiles, Student's interval, rates over the drain.
    covered, warned, right : mapping of metric to float
        Coverage; share with a warning about the metric, or without a value; share with one or the other.
    sequences : int
        Sequences of replications until `precision` was reached, or its largest number.
    reached, precise : float
        Share of the sequences in which it was reached; coverage or warning among these. None if there are none.
    """

    workload: str
    load: float
    requests: int
    truth: Truth
    before: dict[str, float]
    covered: dict[str, float]
    warned: dict[str, float]
    right: dict[str, float]
    sequences: int
    reached: float | None
    precise: float | None


class Runs:
    """The independent runs of a cell, which are drawn when they are asked for.

    Parameters
    ----------
    name, load, requests
        The cell.
    more
        What else the seed depends on.
    """

    def __init__(self, name: str, load: float, requests: int, *more: object) -> None:
        self._rng = _rng(name, load, requests, *more)
        self._drawn: list[Times] = []
        self._name, self._load, self._requests = name, load, requests

    def part(self, first: int, count: int) -> list[Times]:
        """Return runs in a row."""
        while len(self._drawn) < first + count:
            self._drawn.append(TRAFFIC[self._name].served(self._rng, self._requests, self._load))
        return self._drawn[first : first + count]


def grid() -> list[Cell]:
    """Measure all cells, on all cores."""
    workloads = [(name, load) for name in TRAFFIC for load in LOADS]
    with executor() as where:
        return [one for cells in in_order(where, _cells, workloads, "workload") for one in cells]


def _cells(workload: tuple[str, float]) -> list[Cell]:
    name, load = workload
    truth = true_values(name, TRAFFIC[name], load)
    return [cell(name, load, requests, size, truth) for requests, size in SIZES.items()]


def true_values(name: str, traffic: Traffic, load: float) -> Truth:
    """Return the exact values of M/M/1, or those of very long runs, whose first fifth is cut."""
    rate = load * traffic.capacity_rps
    if name == "M/M/1":
        mean_ms = 1000 / (1 - load)
        return Truth(mean_ms, 0.0, -math.log(0.01) * mean_ms, rate, -math.log(1 - _GOOD_SHARE) * mean_ms)
    rng = _rng(name, load, "truth")
    runs = [traffic.served(rng, TRUTH_REQUESTS, load) for _ in range(TRUTH_RUNS)]
    ttft_ms = np.array([1000 * (first_s - arrival_s)[_TRUTH_CUT:] for arrival_s, first_s, _ in runs])
    limit_ms, p99_ms = np.percentile(ttft_ms, [100 * _GOOD_SHARE, 99])
    error_ms = ttft_ms.mean(axis=1).std(ddof=1) / math.sqrt(len(runs))
    return Truth(float(ttft_ms.mean()), float(error_ms), float(p99_ms), rate, float(limit_ms))


def cell(name: str, load: float, requests: int, size: Size, truth: Truth) -> Cell:
    """Measure one cell: independent runs, in groups of ten, and others until they are precise."""
    drawn = Runs(name, load, requests)
    scenario = _scenario(requests, load)
    groups = [drawn.part(i, GROUP) for i in range(0, size.runs, GROUP)]
    earlier = [_before(group, truth) for group in groups]
    outcomes = [_outcome(_result(scenario, _replications(group), truth), truth) for group in groups]
    more = Runs(name, load, requests, "precision")
    sequences = until_all_precise(scenario, more, size, truth, _PATIENCE.get(load))
    right = [one for one in sequences if one is not None]
    return Cell(
        name,
        load,
        requests,
        truth,
        before={metric: float(np.mean([one[metric] for one in earlier])) for metric in METRICS},
        covered={metric: float(np.mean([one[metric][0] for one in outcomes])) for metric in METRICS},
        warned={metric: float(np.mean([one[metric][1] for one in outcomes])) for metric in METRICS},
        right={metric: float(np.mean([any(one[metric]) for one in outcomes])) for metric in METRICS},
        sequences=len(sequences),
        reached=len(right) / len(sequences) if sequences else None,
        precise=float(np.mean(right)) if right else None,
    )


def _rng(name: str, *more: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr((name, *more)).encode()))


def _scenario(requests: int, load: float) -> ResolvedScenario:
    """Return what the warm-up needs to know: it is automatic, the number of requests ends the traffic, and the load."""
    lengths = {name: {"distribution": "constant", "value": 1} for name in ("prompt_tokens", "output_tokens")}
    return from_mapping(
        {
            "warmup_s": "auto",
            "step_time": {"kind": "constant", "seconds": 1},
            "kv_cache": {"blocks": 10},
            "workload": {
                "arrivals": {"process": "poisson", "rate_rps": load},
                "num_requests": requests,
                **lengths,
            },
            "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 1}},
        }
    ).resolve()


def _replications(group: Sequence[Times], first: int = 0) -> list[Replication]:
    numbered = enumerate(map(recording, group), first)
    return [Replication(i, (PolicyRun("p", i, made),), (), {}, ()) for i, made in numbered]


def _result(scenario: ResolvedScenario, made: Sequence[Replication], truth: Truth) -> Result:
    """Return the package's result of the runs: with its warm-up, window, intervals and warnings."""
    warm = warm_up(scenario, made, RunLoads(scenario, made[0]))
    measured = with_windows(scenario, warm, made)
    runs = [run for one in measured for run in one.runs]
    return Result({}, __version__, 0, runs, slo={"ttft_ms": truth.limit_ms}, warnings=warm.notes)


def recording(times: Times) -> Recording:
    """Return a run as the package records it, with what the metrics of the grid need; answers have one token."""
    arrival_s, first_s, finish_s = times
    n = len(arrival_s)
    ones, none = np.ones(n, dtype=np.int64), np.full(n, None, dtype=object)
    requests: dict[str, Any] = {
        "request_class": none,
        "arrival_s": arrival_s,
        "status": np.full(n, "finished", dtype=object),
        "first_scheduled_s": arrival_s,
        "first_token_s": first_s,
        "last_token_s": finish_s,
        "finish_s": finish_s,
        "max_itl_s": np.full(n, np.nan),
    }
    requests |= dict.fromkeys(("prompt_tokens", "output_tokens", "due_tokens", "tokens_emitted"), ones)
    requests |= dict.fromkeys(("preemptions", "recomputed_tokens"), 0 * ones)
    kinds = {"start_s": float, "duration_s": float, "repeat": int, "last_step_s": float}
    kinds |= {"decode_seqs": int, "prefill_seqs": int}
    steps = KeptTable({name: np.zeros(0, dtype=kind) for name, kind in kinds.items()})
    gaps = KeptTable(gap_s=np.zeros(0), tokens=np.zeros(0, dtype=np.int64))
    return Recording(requests, steps, gaps, 0, 0, 0, None, None, float(finish_s.max()))


def _outcome(result: Result, truth: Truth) -> dict[str, tuple[bool, bool]]:
    """Return for each metric whether its interval has the true value, and whether it is warned about or missing."""
    row = result.summary_rows[0]
    about_all = any(text in line for text in _ABOUT_ALL for line in result.warnings)
    found = {}
    for metric, column in METRICS.items():
        low, high, true = row[f"ci_low_{column}"], row[f"ci_high_{column}"], getattr(truth, column)
        known = isinstance(low, float) and isinstance(high, float)
        covers = known and low <= true <= high
        warned = about_all or not known or any(column in line for line in result.warnings)
        found[metric] = (bool(covers), bool(warned))
    return found


def _before(group: Sequence[Times], truth: Truth) -> dict[str, bool]:
    """Return which intervals of the earlier rules have the true value, with a warm-up of a tenth of the requests."""
    cut = len(group[0][0]) // 10
    start_s = max(float(arrival_s[cut]) for arrival_s, _, _ in group)
    values: dict[str, list[float]] = {column: [] for column in METRICS.values()}
    for arrival_s, first_s, finish_s in group:
        kept = arrival_s >= start_s
        if not kept.any():
            return dict.fromkeys(METRICS, False)
        ttft_ms = 1000 * (first_s - arrival_s)[kept]
        time_s = float(finish_s[kept].max() - arrival_s[kept][0])
        values["mean_ttft_ms"].append(float(ttft_ms.mean()))
        values["p99_ttft_ms"].append(float(np.percentile(ttft_ms, 99)))
        values["request_throughput"].append(len(ttft_ms) / time_s)
        values["request_goodput"].append(float((ttft_ms <= truth.limit_ms).sum()) / time_s)
    found = {metric: mean_interval(values[column]) for metric, column in METRICS.items()}
    return {
        metric: (one.low or 0.0) <= getattr(truth, METRICS[metric]) <= (one.high or 0.0)
        for metric, one in found.items()
    }


def until_all_precise(
    scenario: ResolvedScenario, runs: Runs, size: Size, truth: Truth, patience: int | None = None
) -> list[bool | None]:
    """Return for each of many sequences whether its result is right; None if the precision is not reached.

    The sequences have no run in common. Each can go on to the largest number of replications, because those that reach
    the precision early are the ones whose interval happens to be short.
    """
    wanted = PrecisionSettings.model_validate(PRECISION)
    precise = scenario.with_(precision=wanted)
    found: list[bool | None] = []
    begin = 0
    while len(found) < size.sequences and begin + wanted.max_replications <= size.sequence_runs:
        if patience is not None and found == [None] * patience:
            break
        made = until_precise(_Growing(runs, begin).up_to, precise, wanted)
        begin += len(made)
        reached = len(made) < wanted.max_replications or not precision_note(precise, made, RunLoads(precise, made[0]))
        found.append(_right(precise, made, truth) if reached else None)
    return found


class _Growing:
    """Replications that are made when they are asked for, each once."""

    def __init__(self, runs: Runs, begin: int) -> None:
        self._runs, self._begin = runs, begin
        self._made: list[Replication] = []

    def up_to(self, count: int) -> list[Replication]:
        """Return the first `count` replications."""
        done = len(self._made)
        self._made += _replications(self._runs.part(self._begin + done, count - done), done)
        return self._made[:count]


def _right(scenario: ResolvedScenario, made: Sequence[Replication], truth: Truth) -> bool:
    """Return whether the interval of the mean TTFT, or else a warning, is right."""
    windows = with_windows(scenario, warm_up(scenario, made, RunLoads(scenario, made[0])), made)
    found = estimate([_mean_ttft_ms(one.runs[0]) for one in windows])
    if (found.low or 0.0) <= truth.mean_ttft_ms <= (found.high or 0.0):
        return True
    return any(_outcome(_result(scenario, made, truth), truth)["mean TTFT"])


def _mean_ttft_ms(run: PolicyRun) -> float:
    requests = run.recording.requests
    ttft_ms = 1000 * (requests["first_token_s"] - requests["arrival_s"])
    return float((ttft_ms if run.window is None else ttft_ms[run.window.arrived(requests)]).mean())


def write(folder: Path) -> list[Path]:
    """Measure the grid and write its page and its figure."""
    from studies.certainty.coverage_page import write_page  # noqa: PLC0415 - the page imports what is measured here

    return write_page(folder, grid())
