"""The tables of fleets: one row per replica, per change of its state, and per stay that a failure ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from simqueue.request import Status
from simqueue.results import metrics
from simqueue.results.fleets import uses_of
from simqueue.results.summary import span_of

if TYPE_CHECKING:
    from simqueue.results.metrics import Integers
    from simqueue.results.policyrun import PolicyRun
    from simqueue.simulation.recording import FleetRecord, Recording

REQUEST_TYPES: Final = {
    "group": "string",
    "replica_name": "string",
    "route_reason": "string",
    "router_ms": "float64",
    "failed_attempts_ms": "float64",
    "resent": "Int64",
    "discarded_tokens": "Int64",
}
"""Columns of the requests table, if any policy has a fleet."""
STEP_TYPES: Final = {"replica": "Int64"}
"""Columns of the steps table, if any policy has a fleet."""
_OF_RUN: Final = {"policy": "string", "replication": "int64"}
_OF_REPLICA: Final = {"replica": "int64", "name": "string", "group": "string"}
REPLICA_TYPES: Final = (
    _OF_RUN
    | _OF_REPLICA
    | {
        "requests": "int64",
        "finished": "int64",
        "lost_stays": "int64",
        "output_tokens": "int64",
        "ready_s": "float64",
        "busy_share": "float64",
        "mean_batch": "float64",
        "kv_peak_share": "float64",
        "prefix_hit_rate": "float64",
        "failures": "int64",
    }
)
LIFE_TYPES: Final = _OF_RUN | {"time_s": "float64"} | _OF_REPLICA | {"state": "string"}
STAY_TYPES: Final = (
    _OF_RUN
    | {"request_id": "string"}
    | _OF_REPLICA
    | {
        "submitted_s": "float64",
        "first_scheduled_s": "float64",
        "first_token_s": "float64",
        "last_token_s": "float64",
        "end_s": "float64",
        "tokens": "int64",
        "kept": "boolean",
    }
)
TABLES: Final = {"replicas": REPLICA_TYPES, "lives": LIFE_TYPES, "stays": STAY_TYPES}


def request_columns(recording: Recording) -> dict[str, Any]:
    """Return the columns of a fleet in the requests table; none without a fleet."""
    fleet, requests = recording.fleet, recording.requests
    if fleet is None:
        return {}
    numbers = np.asarray(requests["replica"], dtype=np.int64)
    again, unsent = requests["resent"] > 0, np.where(np.isnan(requests["routed_s"]), np.nan, 0.0)
    return {
        "group": _of_each(numbers, [one.group for one in fleet.replicas]),
        "replica_name": _of_each(numbers, [one.name for one in fleet.replicas]),
        "route_reason": requests["route_reason"],
        "router_ms": 1000 * (requests["routed_s"] - requests["arrival_s"]),
        "failed_attempts_ms": np.where(again, 1000 * (requests["reached_s"] - requests["routed_s"]), unsent),
        "resent": requests["resent"],
        "discarded_tokens": requests["discarded_tokens"],
    }


def fleet_table(name: str, runs: Sequence[PolicyRun]) -> pd.DataFrame:
    """Return a table of `TABLES` over all runs; empty without fleets."""
    types = TABLES[name]
    parts = []
    for run in runs:
        if run.recording.fleet is not None:
            columns = _MADE[name](run.recording, run.recording.fleet)
            n = len(columns["replica"])
            columns |= {"policy": [run.policy] * n, "replication": np.full(n, run.replication)}
            parts.append(typed(columns, types))
    return pd.concat(parts, ignore_index=True) if parts else typed({column: [] for column in types}, types)


def typed(columns: Mapping[str, Any], types: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns as a table with these types."""
    return pd.DataFrame({name: pd.Series(columns[name], dtype=kind) for name, kind in types.items()})


def _of_each(numbers: Integers, values: Sequence[str]) -> list[str | None]:
    return [values[number] if number >= 0 else None for number in numbers.tolist()]


def _named(fleet: FleetRecord, numbers: Integers) -> dict[str, Any]:
    return {
        "replica": numbers,
        "name": _of_each(numbers, [one.name for one in fleet.replicas]),
        "group": _of_each(numbers, [one.group for one in fleet.replicas]),
    }


def _replicas(recording: Recording, fleet: FleetRecord) -> dict[str, Any]:
    uses, stays = uses_of(recording, span_of(recording)), fleet.stays
    n = len(uses)
    numbers = np.arange(n)
    failed = fleet.lives["state"] == "failed"
    hits = [use.prefix for use in uses]
    return (
        _named(fleet, numbers)
        | _served(recording, fleet)
        | {
            "lost_stays": np.bincount(stays["replica"], minlength=n),
            "ready_s": [use.ready_s for use in uses],
            "busy_share": [use.busy_share for use in uses],
            "mean_batch": [metrics.share(use.batch_area_s, use.full_steps_s) for use in uses],
            "kv_peak_share": [use.kv_peak_share for use in uses],
            "prefix_hit_rate": [one and metrics.share(one.hit_tokens, one.queried_tokens) for one in hits],
            "failures": np.bincount(fleet.lives["replica"][failed], minlength=n),
        }
    )


def _served(recording: Recording, fleet: FleetRecord) -> dict[str, Any]:
    """Return how many requests each replica got and finished, and how many tokens it made."""
    requests, stays, n = recording.requests, fleet.stays, len(fleet.replicas)
    last = np.asarray(requests["replica"], dtype=np.int64)
    at, finished = last >= 0, metrics.has_status(requests, Status.FINISHED)
    begun = np.zeros(len(last), dtype=np.int64)
    np.add.at(begun, stays["request"], 1)
    # a stay that ended a request is the last one of its row too, and is counted once
    ended_it = metrics.has_status(requests, Status.REJECTED) & (begun > 0)
    elsewhere = np.zeros(len(last), dtype=np.int64)
    np.add.at(elsewhere, stays["request"], stays["tokens"] * stays["kept"])
    made = np.zeros(n, dtype=np.int64)
    np.add.at(made, last[at], (requests["tokens_emitted"] - elsewhere)[at])
    np.add.at(made, stays["replica"], stays["tokens"])
    got = np.bincount(last[at & ~ended_it], minlength=n) + np.bincount(stays["replica"], minlength=n)
    return {"requests": got, "finished": np.bincount(last[at & finished], minlength=n), "output_tokens": made}


def _lives(_: Recording, fleet: FleetRecord) -> dict[str, Any]:
    lives = fleet.lives
    return _named(fleet, lives["replica"]) | {"time_s": lives["time_s"], "state": lives["state"]}


def _stays(recording: Recording, fleet: FleetRecord) -> dict[str, Any]:
    stays = dict(fleet.stays)
    ids = recording.requests["request_id"][stays["request"]]
    return stays | _named(fleet, stays["replica"]) | {"request_id": ids, "kept": stays["kept"] > 0}


_MADE: Final[Mapping[str, Callable[[Recording, FleetRecord], dict[str, Any]]]] = {
    "replicas": _replicas,
    "lives": _lives,
    "stays": _stays,
}
