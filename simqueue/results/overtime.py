"""Means as functions of time over replications: requests in the system, waiting and running, and TTFT by arrival."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from simqueue.errors import InputError
from simqueue.results.classes import ALL_CLASSES
from simqueue.statistics.bands import Floats, band

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView

POINTS: Final = 61
_MOST_POINTS: Final = 10_000
NUMBERS: Final = ("in_system", "waiting", "running")
TTFT: Final = "ttft_ms"
COLUMNS: Final = {
    "policy": "string",
    "metric": "string",
    "time_s": "float64",
    **dict.fromkeys(("value", "low", "high", "simultaneous_low", "simultaneous_high"), "float64"),
    "observations": "int64",
}


def means_over_time(result: ResultView, points: int = POINTS, until_s: float | None = None) -> pd.DataFrame:
    """Return means over the replications at equally spaced times; see `Displayed.means_over_time`."""
    if not isinstance(points, Integral) or isinstance(points, bool) or not 2 <= points <= _MOST_POINTS:
        raise InputError(f"must be a whole number from 2 to {_MOST_POINTS:,}", "points", value=points)
    if until_s is not None and not (_is_number(until_s) and 0 < until_s < math.inf):
        raise InputError("must be a finite number > 0", "until_s", value=until_s)
    if not result.replicated:
        raise InputError("means over time: need replications, at least 2; each policy ran once")
    horizon_s = result.scenario.get("horizon_s")
    end_s = min(until_s or math.inf, horizon_s or math.inf, _last_s(result.requests))
    time_s = np.linspace(0.0, end_s, int(points))
    made = [_of_policy(result, name, time_s) for name in result.policies]
    return pd.concat(made, ignore_index=True)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _last_s(requests: pd.DataFrame) -> float:
    """Return when the last request of all replications arrives or leaves."""
    last = requests[["arrival_s", "finish_s"]].max().max()
    return float(last) if last > 0 else 1.0


def _of_policy(result: ResultView, policy: str, time_s: Floats) -> pd.DataFrame:
    own = result.requests[result.requests["policy"] == policy]
    rows = [row for row in result.replication_rows if row["policy"] == policy and row["request_class"] == ALL_CLASSES]
    runs = [own[own["replication"] == row["replication"]] for row in rows]
    found = {**_numbers(runs, time_s), TTFT: _ttft_ms(runs, time_s)}
    tables = [
        pd.DataFrame([asdict(one) for one in band(sums, counts, result.confidence)]).assign(
            policy=policy, metric=metric, time_s=time_s, observations=counts.sum(axis=0).astype(np.int64)
        )
        for metric, (sums, counts) in found.items()
    ]
    return pd.concat(tables, ignore_index=True)[[*COLUMNS]].astype(COLUMNS)


def _numbers(runs: Sequence[pd.DataFrame], time_s: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Return the numbers of requests at each time, one row per replication; one that leaves then is not counted."""
    counted = [_counted(run, time_s) for run in runs]
    once = np.ones((len(runs), len(time_s)))
    return {name: (np.array([one[name] for one in counted]), once) for name in NUMBERS}


def _counted(run: pd.DataFrame, time_s: Floats) -> dict[str, Floats]:
    arrived = _by(run["arrival_s"].to_numpy(), time_s)
    leave_s = run["finish_s"].fillna(np.inf).to_numpy()
    started = _by(np.minimum(run["first_scheduled_s"].fillna(np.inf).to_numpy(), leave_s), time_s)
    left = _by(leave_s, time_s)
    return {"in_system": arrived - left, "waiting": arrived - started, "running": started - left}


def _by(happened_s: Floats, time_s: Floats) -> Floats:
    """Return how often something has happened by each time."""
    return np.searchsorted(np.sort(happened_s), time_s, side="right").astype(np.float64)


def _ttft_ms(runs: Sequence[pd.DataFrame], time_s: Floats) -> tuple[Floats, Floats]:
    """Return sum and number of the TTFT of requests that arrive nearest to each time, one row per replication."""
    half = (time_s[1] - time_s[0]) / 2
    edges = np.append(time_s - half, time_s[-1] + half)
    known = [run.loc[run["ttft_ms"].notna(), ["arrival_s", "ttft_ms"]].to_numpy() for run in runs]
    sums = [np.histogram(one[:, 0], edges, weights=one[:, 1])[0] for one in known]
    counts = [np.histogram(one[:, 0], edges)[0] for one in known]
    return np.array(sums, dtype=np.float64), np.array(counts, dtype=np.float64)
