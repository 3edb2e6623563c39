"""What a run says about a limit or a metric, value by value, so that chance can be judged.

A percentile is judged by the share of the values that are beyond the limit: P99 is at most 500 ms if at most 1 % of all
values are above 500 ms. A share is a mean, so one test serves for all limits.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simqueue.decisions.conditions import LOST, Condition, Conditions
from simqueue.decisions.judgement import lost_share
from simqueue.errors import InputError
from simqueue.experiment.metric_names import extras
from simqueue.request import Status
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.latencies import GOOD, NO_EXTRAS, parsed, samples_ms
from simqueue.results.metrics import Latencies, has_status, meets_slo
from simqueue.results.policyrun import PolicyRun
from simqueue.results.replicated import values_needed, why_undefined
from simqueue.results.summary import Row, summarize
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.workload.slo import of_requests

Values = NDArray[np.float64]

_OF_REQUESTS: Final = ("ttft", "tpot", "e2el")
_LOST: Final = (Status.REJECTED, Status.TIMED_OUT, Status.UNFINISHED)
_BINS: Final = 200
"""Parts of a run in which gaps between tokens are gathered: they are too many to be judged one by one."""


def excess(run: PolicyRun, condition: Condition, scenario: ResolvedScenario) -> Values:
    """Return how far a run is beyond a limit: values whose mean is above 0 if the limit is not kept.

    They are in order of time: one per request, or per part of the run for gaps between tokens; a single one for the
    other columns of the summary. Empty if nothing was measured.

    Raises
    ------
    InputError
        If the column is undefined for the run.
    """
    whole = condition.request_class == ALL_CLASSES
    if whole and condition.column == LOST:
        return _beyond(_lost(run), condition.limit)
    if whole and condition.column == GOOD and not scenario.class_slos:
        return _beyond(_bad(run, scenario), 1 - condition.limit)
    found = parsed(condition.column)
    if whole and found is not None and condition.at_most:
        q, metric = found
        if metric in _OF_REQUESTS:
            return _against(_latencies_ms(run, metric), q, condition.limit)
        if metric == "itl":
            return _gaps_against(run, q, condition.limit)
    value = column_value(run, condition.column, scenario, condition.request_class)
    scale = abs(condition.limit) or 1.0
    return np.array([(value - condition.limit if condition.at_most else condition.limit - value) / scale])


def column_value(run: PolicyRun, column: str, scenario: ResolvedScenario, request_class: str = ALL_CLASSES) -> float:
    """Return the value of a column of the summary of one run.

    Raises
    ------
    InputError
        If it is undefined.
    """
    row = _rows(run, scenario).get(request_class)
    where = f"candidate in replication {run.replication}"
    if row is None:
        raise InputError(f"{column}: no request of class {request_class} in {where}")
    value = lost_share(row) if column == LOST else row.get(column)
    problem = "" if column == LOST else why_undefined(row, column, where)
    if problem or not isinstance(value, int | float):
        raise InputError(f"{column}: {problem or f'undefined for {where}'}")
    return float(value)


def per_request(run: PolicyRun, column: str) -> Values | None:
    """Return the values of all requests of which a column is the mean, NaN where there is none; None for others."""
    found = parsed(column)
    if found is None or found[0] is not None or found[1] not in _OF_REQUESTS:
        return None
    return _latencies_ms(run, found[1], whole=True)


def _rows(run: PolicyRun, scenario: ResolvedScenario) -> dict[str, Row]:
    rows = summarize(
        run.policy, run.replication, run.recording, scenario.slo, run.window, scenario.class_slos, extras(scenario)
    )
    return {str(row["request_class"]): row for row in rows}


def _measured(run: PolicyRun) -> NDArray[np.bool_]:
    requests = run.recording.requests
    return np.ones(len(requests["arrival_s"]), dtype=np.bool_) if run.window is None else run.window.arrived(requests)


def _latencies_ms(run: PolicyRun, metric: str, *, whole: bool = False) -> Values:
    """Return a latency of the measured requests that finished; of all requests, with NaN for others, if `whole`."""
    requests, inside = run.recording.requests, _measured(run)
    if not whole:
        return np.asarray(samples_ms(requests, inside, NO_EXTRAS)[metric])
    done = inside & has_status(requests, Status.FINISHED)
    found = Latencies(requests)
    seconds = {"ttft": found.ttft_s, "tpot": found.tpot_s, "e2el": found.e2el_s}[metric]
    return np.asarray(np.where(done, 1000 * seconds, np.nan))


def _lost(run: PolicyRun) -> Values:
    requests = run.recording.requests
    return np.asarray(np.any([has_status(requests, status) for status in _LOST], axis=0), dtype=np.float64)


def _bad(run: PolicyRun, scenario: ResolvedScenario) -> Values:
    """Return 1 for each measured request that does not meet the limits of single requests, else 0."""
    requests = run.recording.requests
    good = has_status(requests, Status.FINISHED) & meets_slo(Latencies(requests), of_requests(scenario.slo))
    return (~good)[_measured(run)].astype(np.float64)


def _beyond(indicator: Values, allowed: float) -> Values:
    return indicator - allowed


def _against(values_ms: Values, q: float | None, limit_ms: float) -> Values:
    if q is None:
        return values_ms / limit_ms - 1
    return (values_ms > limit_ms).astype(np.float64) - (1 - q / 100)


def _gaps_against(run: PolicyRun, q: float | None, limit_ms: float) -> Values:
    """Return the same of the gaps between tokens, gathered in parts of the run with as many tokens each."""
    totals, tokens, done = np.zeros(_BINS), np.zeros(_BINS), 0
    whole = sum(int(part["tokens"].sum()) for part in run.recording.gaps.parts("tokens"))
    for part in run.recording.gaps.parts("gap_s", "tokens"):
        count = part["tokens"].astype(np.float64)
        middle = done + np.cumsum(count) - count / 2
        place = np.minimum((middle * _BINS / max(whole, 1)).astype(np.intp), _BINS - 1)
        totals += np.bincount(place, weights=count * _against(1000 * part["gap_s"], q, limit_ms), minlength=_BINS)
        tokens += np.bincount(place, weights=count, minlength=_BINS)
        done += int(count.sum())
    filled = tokens > 0
    mean = whole / _BINS
    # weighted by tokens, so that the mean of the parts is that of all gaps
    return totals[filled] / mean * (filled.sum() / _BINS) if whole else np.zeros(0)


def mean_of(values: Values) -> float:
    """Return the mean; infinity of no values: nothing was measured, and nothing was kept."""
    return float(values.mean()) if len(values) else math.inf


def check_length(run: PolicyRun, conditions: Conditions) -> None:
    """Raise `InputError` if runs are too short for a percentile to have values beyond it."""
    n = len(run.recording.requests["arrival_s"])
    for one in conditions.all:
        found = parsed(one.column)
        if found is None or found[0] is None or found[1] == "itl" or n >= values_needed(found[0]):
            continue
        needed = values_needed(found[0])
        raise InputError(f"runs of {n} requests have no {one.column}; at least {needed} are needed: ask for more")
