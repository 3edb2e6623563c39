"""The summary: one row per policy, and one more per request class if there are any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.request import Status
from simqueue.results import metrics
from simqueue.results.classes import ALL_CLASSES, RequestClasses
from simqueue.results.fleets import FLEET_TYPES, balance, fleet_columns, group_rows, ready_s_of_all, uses_of
from simqueue.results.latencies import ALWAYS, GOOD, MET, NO_EXTRAS, Extras, named, per_request
from simqueue.results.metrics import Floats, Latencies, Mask
from simqueue.results.pooling import Pairs, pooled_statistics
from simqueue.results.window import TokensMade, Window
from simqueue.workload.slo import OF_REQUESTS, is_of_run, of_requests

if TYPE_CHECKING:
    from simqueue.simulation.recording import Column, Recording

Value = str | int | float | None
Row = dict[str, Value]

_STATISTICS: Final = ("mean", "median", "p95", "p99")

# Column names in order, with pandas types that can hold missing values if the column can be undefined.
SUMMARY_TYPES: Final[dict[str, str]] = {
    "policy": "string",
    "replication": "Int64",
    "request_class": "string",
    "duration_s": "float64",
    "n_requests": "int64",
    "completed": "int64",
    "rejected": "int64",
    "timed_out": "int64",
    "unfinished": "int64",
    "timed_out_share": "float64",
    "retries": "int64",
    "warmup_excluded": "int64",
    "measured_requests": "int64",
    "measured_duration_s": "float64",
    "request_throughput": "float64",
    "output_throughput": "float64",
    "total_token_throughput": "float64",
    "request_goodput": "float64",
    "mean_queue_ms": "float64",
    "mean_client_wait_ms": "float64",
    **{f"{s}_{m}_ms": "float64" for m in ("ttft", "tpot", "itl", "e2el") for s in _STATISTICS},
    "max_itl_ms": "float64",
    "itl_count": "Int64",
    "tpot_excluded": "int64",
    "max_concurrent_requests": "Int64",
    "mean_batch": "float64",
    "kv_peak_share": "float64",
    "prefix_queried_tokens": "Int64",
    "prefix_hit_rate": "float64",
    "self_hit_tokens": "Int64",
    "preemptions": "int64",
    "recomputed_tokens": "int64",
    "gpu_busy_share": "float64",
    "idle_slot_share": "float64",
    "load": "float64",
    "binding": "string",
    "overloaded": "boolean",
    "bounded": "boolean",
    "model_error_pct": "float64",
    "model_error_regime": "string",
    "window": "string",
    "warmup_s": "float64",
    "replications": "int64",
}


def column_type(name: str) -> str:
    """Return the pandas type of a column, also of an optional one and of an end of an interval."""
    return (SUMMARY_TYPES | FLEET_TYPES).get(name, "boolean" if name.startswith(MET) else "float64")


def summarize(
    policy: str,
    replication: int,
    recording: Recording,
    slo: Mapping[str, float] | None = None,
    window: Window | None = None,
    class_slo: Mapping[str, Mapping[str, float]] | None = None,
    extras: Extras = NO_EXTRAS,
) -> list[Row]:
    """Return the summary rows of one run: one for all requests, then one per request class if there are any.

    Parameters
    ----------
    policy, replication
        The policy and the replication of the run.
    recording : Recording
    slo : mapping, optional
        Upper bounds in milliseconds, see `simqueue.workload.slo`. Those of a run have no effect here.
    window : Window, optional
        The steady part of the run: rates count what happens in it, and latencies are of the requests that arrive in it.
        Counts of requests, preemptions and the quantities of the machine cover the whole run. So does ITL, because
        gaps are recorded without their requests. By default latencies are of all requests, and rates are those of
        finished requests over the time from the first arrival to the last departure.
    class_slo : mapping, optional
        Upper bounds of request classes with bounds of their own; the others use `slo`. A request without any bound is
        good if it finishes.
    extras : Extras
        Which optional columns the rows have.

    Returns
    -------
    list of dict
        Each with the keys of `SUMMARY_TYPES`, in that order, and the optional columns after them; None if a quantity
        is undefined.
        `simqueue.results.steadiness.judged` fills in the columns about the load.

    Raises
    ------
    InputError
        If a key of `slo` is neither a limit of requests nor one of a run.
    """
    asked = _Asked(recording, slo, window, class_slo, extras)
    rows: list[Row] = []
    for name, inside in RequestClasses(recording.requests["request_class"]).masks():
        row = asked.row(name, inside)
        # Steps and gaps are shared by all classes, so only the row of all requests has their columns.
        row |= _machine(recording, asked.run, (*ALWAYS, *extras.percentiles)) if name == ALL_CLASSES else {}
        rows.append(_complete(row, policy, replication, extras))
    return rows


def summarize_groups(
    policy: str, replication: int, recording: Recording, window: Window | None, extras: Extras
) -> list[Row]:
    """Return one row for each group of a fleet, as those of `summarize`, with the label of the group as its class."""
    asked = _Asked(recording, None, window, None, extras)
    return [_complete(row, policy, replication, extras) for row in group_rows(recording, asked.run, asked.row)]


def _complete(row: Row, policy: str, replication: int, extras: Extras) -> Row:
    named: Row = {"policy": policy, "replication": replication, "replications": 1, **row}
    return {column: named.get(column) for column in (*SUMMARY_TYPES, *extras.columns)}


class _Asked:
    """The columns of a summary about some requests of a run; `run` is from its first arrival to its last departure."""

    def __init__(
        self,
        recording: Recording,
        slo: Mapping[str, float] | None,
        window: Window | None,
        class_slo: Mapping[str, Mapping[str, float]] | None,
        extras: Extras,
    ) -> None:
        for bounds in (slo, *(class_slo or {}).values()):
            check_slo(bounds)
        requests = recording.requests
        self._recording, self._window, self._extras = recording, window, extras
        self.run = span_of(recording)
        self._good = _good(requests["request_class"], Latencies(requests), slo, class_slo)
        everything = np.ones(len(requests["arrival_s"]), dtype=np.bool_)
        self._measured = everything if window is None else window.arrived(requests)
        good = self._good
        self._rates = _Totals(recording, good) if window is None else _Happening(recording, good, window)

    def row(self, name: str | None, inside: Mask) -> Row:
        """Return the columns about the requests in a mask."""
        requests, run, window, good = self._recording.requests, self.run, self._window, self._good
        row: Row = {"request_class": name, **_counts(self._recording, inside)}
        row |= per_request(requests, inside & self._measured, self._extras)
        row |= _rates(self._rates, inside, run if window is None else window)
        row |= fleet_columns(self._recording, inside) if self._extras.fleets else {}
        row[GOOD] = None if good is None else _good_share(requests, inside & self._measured, good)
        row["duration_s"] = run.duration_s if run else None
        early = None if window is None else inside & (requests["arrival_s"] < window.start_s)
        row["warmup_excluded"] = 0 if early is None else int(np.sum(early))
        return row


def _good(
    labels: NDArray[Any],
    found: Latencies,
    slo: Mapping[str, float] | None,
    class_slo: Mapping[str, Mapping[str, float]] | None,
) -> Mask | None:
    """Return a mask of the requests that meet the bounds of their class, or None if there are no bounds."""
    own = {name: of_requests(bounds) for name, bounds in (class_slo or {}).items()}
    if not any((of_requests(slo), *own.values())):
        return None
    good = metrics.meets_slo(found, of_requests(slo))
    for name, bounds in own.items():
        good = np.where(np.asarray(labels == name, dtype=np.bool_), metrics.meets_slo(found, bounds), good)
    return good


def check_slo(slo: Mapping[str, float] | None) -> None:
    """Raise InputError if `slo` has a key that is no limit."""
    for name in slo or {}:
        if name not in OF_REQUESTS and not is_of_run(name):
            raise InputError(f"slo: {unknown('key', name, OF_REQUESTS)}")


def span_of(recording: Recording) -> Window | None:
    """Return the time from the first arrival to the last departure, or to the end of the run if requests are left."""
    requests = recording.requests
    if not len(requests["arrival_s"]):
        return None
    still_there = bool(metrics.has_status(requests, Status.UNFINISHED).any())
    end_s = recording.end_s if still_there else np.max(requests["finish_s"])
    return Window(float(np.min(requests["arrival_s"])), float(end_s))


def _counts(recording: Recording, inside: Mask) -> Row:
    requests = recording.requests
    n = int(np.sum(inside))
    by_status = {s: int(np.sum(inside & metrics.has_status(requests, s))) for s in Status}
    return {
        "n_requests": n,
        "completed": by_status[Status.FINISHED],
        "rejected": by_status[Status.REJECTED],
        "timed_out": by_status[Status.TIMED_OUT],
        "unfinished": by_status[Status.UNFINISHED],
        "timed_out_share": metrics.share(by_status[Status.TIMED_OUT], n),
        "retries": int(np.sum(requests["attempt"][inside] > 0)) if "attempt" in requests else 0,
        "preemptions": int(np.sum(requests["preemptions"][inside])),
        "recomputed_tokens": int(np.sum(requests["recomputed_tokens"][inside])),
    }


class _Totals:
    """What the rates of a whole run count, by request: finished requests with all their tokens."""

    def __init__(self, recording: Recording, good: Mask | None) -> None:
        requests = recording.requests
        self.done = metrics.has_status(requests, Status.FINISHED)
        self.good = None if good is None else self.done & good
        # an engine can make fewer tokens than were requested
        self.output_tokens = np.where(self.done, requests["tokens_emitted"], 0)
        self.prompt_tokens = np.where(self.done, requests["prompt_tokens"], 0)


class _Happening:
    """What the rates of a window count, by request: departures and tokens in it, of requests that came at any time."""

    def __init__(self, recording: Recording, good: Mask | None, window: Window) -> None:
        requests = recording.requests
        self.done = metrics.has_status(requests, Status.FINISHED) & window.left(requests)
        self.good = None if good is None else self.done & good
        made = TokensMade(recording)
        self.output_tokens = made.until(window.end_s) - made.until(window.start_s)
        first_s = requests["first_token_s"]
        computed = (first_s > window.start_s) & (first_s <= window.end_s)
        self.prompt_tokens = np.where(computed, requests["prompt_tokens"], 0)


def _rates(counted: _Totals | _Happening, inside: Mask, span: Window | None) -> Row:
    time_s = span.duration_s if span else 0.0
    output = float(np.sum(counted.output_tokens[inside]))
    prompt = float(np.sum(counted.prompt_tokens[inside]))
    good = None if counted.good is None else int(np.sum(counted.good & inside))
    return {
        "measured_duration_s": time_s if span else None,
        "request_throughput": metrics.share(int(np.sum(counted.done & inside)), time_s),
        "output_throughput": metrics.share(output, time_s),
        "total_token_throughput": metrics.share(prompt + output, time_s),
        "request_goodput": None if good is None else metrics.share(good, time_s),
    }


def _good_share(requests: Mapping[str, NDArray[Any]], measured: Mask, good: Mask) -> float | None:
    """Return the share of good requests among those that arrived in the window."""
    done = metrics.has_status(requests, Status.FINISHED)
    return metrics.share(int(np.sum(measured & done & good)), int(np.sum(measured)))


def _machine(recording: Recording, run: Window | None, levels: Sequence[float]) -> Row:
    """Return the columns about steps and gaps between tokens, which are read in parts: they can exceed the memory."""

    def gaps_ms() -> Iterator[Pairs]:
        for part in recording.gaps.parts("gap_s", "tokens"):
            yield 1000 * part["gap_s"], part["tokens"]

    gaps = pooled_statistics(gaps_ms, levels)
    busy_s = metrics.total(part_s for part_s, _ in _busy(recording, run))
    batch_area_s = metrics.total(part_s * batch for part_s, batch in _busy(recording, run))
    slots, prefix = recording.slot_steps, recording.prefix
    return named("itl", gaps.mean, levels, gaps.percentiles) | {
        "max_itl_ms": gaps.maximum,
        "itl_count": gaps.count,
        "max_concurrent_requests": recording.max_concurrent,
        "mean_batch": metrics.share(batch_area_s, busy_s),
        "kv_peak_share": metrics.share(recording.blocks_peak, recording.blocks_total),
        "prefix_queried_tokens": None if prefix is None else prefix.queried_tokens,
        "prefix_hit_rate": None if prefix is None else metrics.share(prefix.hit_tokens, prefix.queried_tokens),
        "self_hit_tokens": None if prefix is None else prefix.self_hit_tokens,
        "gpu_busy_share": metrics.share(busy_s + (recording.unfinished_step_s or 0.0), _ready_s(recording, run)),
        "idle_slot_share": None if slots is None else metrics.share(recording.idle_slot_steps or 0, slots),
        **(balance(uses_of(recording, run)) if recording.fleet else {}),
    }


def _ready_s(recording: Recording, run: Window | None) -> float:
    """Return how long replicas could work in a run, all of them together."""
    if run is None:
        return 0.0
    return run.duration_s if recording.fleet is None else ready_s_of_all(recording.fleet, run)


def _busy(recording: Recording, run: Window | None) -> Iterator[tuple[Floats, Column]]:
    """Yield, for rows of steps, the GPU time within the run in seconds and the number of sequences."""
    end_s = run.end_s if run else -np.inf
    for steps in recording.steps.parts("start_s", "duration_s", "decode_seqs", "prefill_seqs"):
        yield metrics.busy_s(steps, end_s), steps["decode_seqs"] + steps["prefill_seqs"]
