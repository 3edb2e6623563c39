"""The tables of requests, steps and summaries as pandas DataFrames, with the same types in every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from simqueue.results import fleettables
from simqueue.results.metrics import Latencies, client_wait_s, front_end_s
from simqueue.results.summary import SUMMARY_TYPES, column_type

if TYPE_CHECKING:
    from simqueue.simulation.recording import Recording

REQUEST_TYPES: dict[str, str] = {
    "policy": "string",
    "replication": "int64",
    "request_id": "string",
    "arrival_s": "float64",
    "prompt_tokens": "int64",
    "output_tokens": "int64",
    "status": "string",
    "reject_reason": "string",
    "replica": "Int64",
    "first_scheduled_s": "float64",
    "first_token_s": "float64",
    "finish_s": "float64",
    "queue_ms": "float64",
    "ttft_ms": "float64",
    "tpot_ms": "float64",
    "e2el_ms": "float64",
    "max_itl_ms": "float64",
    "preemptions": "int64",
    "cached_tokens": "int64",
    "recomputed_tokens": "int64",
    "tokens_emitted": "int64",
}
STEP_TYPES: dict[str, str] = {
    "policy": "string",
    "replication": "int64",
    "start_s": "float64",
    "duration_s": "float64",
    "repeat": "int64",
    "last_step_s": "float64",
    "decode_seqs": "int64",
    "context_tokens": "int64",
    "prefill_tokens": "int64",
    "prefill_seqs": "int64",
    "blocks_used": "int64",
    "running": "int64",
    "waiting": "int64",
    "preempted": "int64",
}

_OF_GROUPS: Final = ("policy", "group")
_FURTHER: Final = fleettables.REQUEST_TYPES | fleettables.STEP_TYPES
_WITHOUT: Final = {
    "client_wait_ms": "float64",
    "front_end_ms": "float64",
    "first_token_delay_ms": "float64",
    "attempt": "int64",
}
"""Optional columns that are 0, and not undefined, for a run in which no request needs them."""


def requests_table(recording: Recording, policy: str, replication: int) -> pd.DataFrame:
    """Return one row per request, in order of arrival, with the columns and types of `REQUEST_TYPES`.

    The columns request_class, front_end_ms, first_token_delay_ms, client_wait_ms, attempt, session and client follow if
    any request has such a value, and those of a fleet.
    Missing values are NaN in float columns and ``pd.NA`` elsewhere. docs/reference/metrics.md defines every column.
    """
    columns: dict[str, Any] = dict(recording.requests)
    found = Latencies(recording.requests)
    for name in ("queue", "ttft", "tpot", "e2el", "max_itl"):
        columns[f"{name}_ms"] = 1000 * getattr(found, f"{name}_s")
    columns["status"] = [str(status) for status in columns["status"]]
    replica = np.asarray(columns["replica"], dtype=np.int64)
    columns["replica"] = pd.arrays.IntegerArray(replica, replica < 0)
    has_classes = any(name is not None for name in columns["request_class"])
    types = REQUEST_TYPES | ({"request_class": "string"} if has_classes else {}) | _client_columns(columns)
    further = fleettables.request_columns(recording)
    return _frame(columns | further, types | (fleettables.REQUEST_TYPES if further else {}), policy, replication)


def _client_columns(columns: dict[str, Any]) -> dict[str, str]:
    """Return the types of the columns about clients that any request needs; add `client_wait_ms` to `columns`."""
    types: dict[str, str] = {}
    columns["client_wait_ms"] = 1000 * client_wait_s(columns)
    columns["front_end_ms"] = 1000 * front_end_s(columns)
    columns["first_token_delay_ms"] = 1000 * columns.get("first_token_delay_s", np.zeros(1))
    for name in ("front_end_ms", "first_token_delay_ms", "client_wait_ms"):
        if np.nan_to_num(columns[name]).any():
            types[name] = _WITHOUT[name]
    if "attempt" in columns and columns["attempt"].any():
        types["attempt"] = _WITHOUT["attempt"]
    for name in ("session", "client"):
        if any(value is not None for value in columns.get(name, ())):
            types[name] = "string"
    return types


def steps_table(recording: Recording, policy: str, replication: int) -> pd.DataFrame:
    """Return the steps in order of time, with the columns and types of `STEP_TYPES`; equal steps are merged."""
    types = STEP_TYPES | (fleettables.STEP_TYPES if recording.fleet else {})
    return _frame(dict(recording.steps), types, policy, replication)


def summary_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return summary rows as a DataFrame with the columns and types of `SUMMARY_TYPES`, optional ones and intervals."""
    listed = list(rows)
    types = {name: column_type(name) for name in (listed[0] if listed else SUMMARY_TYPES)}
    return pd.DataFrame({name: _typed([row[name] for row in listed], kind) for name, kind in types.items()})


def groups_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows of groups as a DataFrame with the types of the summary."""
    listed = list(rows)
    types = {name: "string" if name == "group" else column_type(name) for name in (listed[0] if listed else _OF_GROUPS)}
    return pd.DataFrame({name: _typed([row[name] for row in listed], kind) for name, kind in types.items()})


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dicts of plain Python values, None for missing values."""
    columns = [_plain(table[name]) for name in table.columns]
    names = list(table.columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def stacked(tables: list[pd.DataFrame], types: Mapping[str, str]) -> pd.DataFrame:
    """Return the tables concatenated in the given order; without tables, an empty one with these types."""
    if not tables:
        return pd.DataFrame({name: _typed([], kind) for name, kind in types.items()})
    made = pd.concat(tables, ignore_index=True)
    # a run without waits or retries has no such column; its requests waited for 0 ms and are first attempts
    given = {
        name: pd.concat([_typed(table.get(name, np.zeros(len(table))), kind) for table in tables], ignore_index=True)
        for name, kind in _WITHOUT.items()
        if name in made
    }
    return made.assign(**given, **_of_fleets(tables, made))


def _of_fleets(tables: list[pd.DataFrame], made: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """Return the columns of fleets, with their types: they are undefined for runs without a fleet."""
    further = {name: kind for name, kind in _FURTHER.items() if name in made and not all(name in one for one in tables)}
    return {
        name: pd.concat([_typed(one.get(name, [None] * len(one)), kind) for one in tables], ignore_index=True)
        for name, kind in further.items()
    }


def _frame(columns: dict[str, Any], types: Mapping[str, str], policy: str, replication: int) -> pd.DataFrame:
    n = len(next(iter(columns.values())))
    columns |= {"policy": pd.Series(policy, index=range(n), dtype="string"), "replication": np.full(n, replication)}
    return pd.DataFrame({name: _typed(columns[name], kind) for name, kind in types.items()})


def _typed(values: Any, kind: Any) -> pd.Series[Any]:
    series: pd.Series[Any] = pd.Series(values, dtype=kind)
    return series


def _plain(column: pd.Series[Any]) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]
