"""From the rows of a trace to requests: order, window, thinning, empty rows, limit, clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.workload.limits import LONGEST_S
from simqueue.workload.traces.base import TraceRows
from simqueue.workload.traces.catalog import packaged_trace
from simqueue.workload.traces.readers import READERS
from simqueue.workload.traces.settings import TraceSettings

_Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Replay:
    """Requests of a trace in order of arrival, what people should know, and how many rows were dropped."""

    requests: list[Request]
    notes: tuple[str, ...]
    dropped_rows: int


def read_trace(settings: TraceSettings, base_dir: Path) -> TraceRows:
    """Return all rows of the file that the settings name, in the order of the file.

    Raises
    ------
    InputError
        If the file is missing or is not what its format says.
    """
    reader = READERS[settings.reader_name()]
    if settings.name is not None:
        return reader.read(packaged_trace(settings.name).path, settings.name, {})
    path = str(settings.path)
    return reader.read(base_dir / path, path, settings.columns or {})


def replay(
    settings: TraceSettings, base_dir: Path, rng: np.random.Generator, num_requests: int | None = None
) -> Replay:
    """Return the requests that the settings take from their trace.

    Parameters
    ----------
    settings : TraceSettings
        Which file, which part of it, how fast.
    base_dir : Path
        The folder that relative paths start from.
    rng : numpy.random.Generator
        Decides which rows `thin` keeps: one number for each row of the file, so that a smaller share keeps a
        subset of what a larger one keeps, whatever the window.
    num_requests : int or None
        Take that many only.

    Raises
    ------
    InputError
        If the file is not as it should be, or has fewer rows than asked for.
    """
    rows = read_trace(settings, base_dir)
    notes: list[str] = []
    order = _in_order(rows, notes)
    chosen = _in_window(rows, settings, order, notes)
    if settings.thin is not None:
        chosen = chosen[rng.random(len(rows))[chosen] < settings.thin]
    empty = (rows.prompt_tokens[chosen] == 0) | (rows.output_tokens[chosen] == 0)
    kept = _limited(rows, chosen[~empty], settings, num_requests)
    # Empty rows count up to the last row that is used: what comes later was not asked for.
    zero = chosen[empty] if len(kept) == int((~empty).sum()) else _before(chosen, empty, kept)
    if len(zero):
        notes.append(_about_zero_rows(rows, zero, settings))
    return Replay(_requests(rows, kept, settings), tuple(notes), len(zero))


def _in_order(rows: TraceRows, notes: list[str]) -> _Rows:
    """Return the rows in order of time, rows of equal time as in the file."""
    latest = np.maximum.accumulate(rows.time)
    late = np.flatnonzero(rows.time[1:] < latest[:-1]) + 1
    if len(late) == 0:
        return np.arange(len(rows))
    notes.append(
        f"{rows.label}: {len(late)} of {len(rows)} rows were out of order in time and have been sorted "
        f"(the first is line {rows.lines[late[0]]})"
    )
    return np.argsort(rows.time, kind="stable")


def _in_window(rows: TraceRows, settings: TraceSettings, order: _Rows, notes: list[str]) -> _Rows:
    since_first_s = (rows.time[order] - rows.time[order[0]]) / rows.ticks_per_s
    end_s = np.inf if settings.end_s is None else settings.end_s
    span = f"its rows reach from 0 to {since_first_s[-1]:g} s"
    if settings.end_s is not None and end_s > since_first_s[-1]:
        notes.append(f"{rows.label}: end_s {end_s:g} is after the last row; {span}")
    chosen: _Rows = order[(since_first_s >= settings.start_s) & (since_first_s < end_s)]
    if len(chosen) == 0:
        notes.append(f"{rows.label}: no row lies between start_s {settings.start_s:g} and end_s {end_s:g}; {span}")
    return chosen


def _limited(rows: TraceRows, kept: _Rows, settings: TraceSettings, num_requests: int | None) -> _Rows:
    """Cap the rows, refusing to give fewer than asked."""
    asked = {"trace.limit": settings.limit, "num_requests": num_requests}
    for key, number in asked.items():
        if number is not None and number > len(kept):
            left = "" if len(kept) == len(rows) else f", of which {len(kept)} are left to use"
            raise InputError(f"{key}: {number} requests are asked for, {rows.label} has {len(rows)} rows{left}")
    if settings.limit is not None and num_requests is not None and num_requests > settings.limit:
        raise InputError(f"num_requests: {num_requests} requests are asked for, trace.limit allows {settings.limit}")
    caps = [number for number in asked.values() if number is not None]
    return kept[: min(caps)] if caps else kept


def _before(chosen: _Rows, empty: NDArray[np.bool_], kept: _Rows) -> _Rows:
    end = int(np.flatnonzero(chosen == kept[-1])[0])
    return chosen[:end][empty[:end]]


def _about_zero_rows(rows: TraceRows, zero: _Rows, settings: TraceSettings) -> str:
    """Return the note on dropped rows, or raise if they are not to be dropped."""
    first = int(zero[0])
    if settings.zero_token_rows == "fail":
        raise rows.wrong(
            first,
            f"prompt {rows.prompt_tokens[first]} and output {rows.output_tokens[first]} tokens; both must be at "
            "least 1 (zero_token_rows: drop leaves such rows out)",
        )
    return (
        f"{rows.label}: dropped {len(zero)} of {len(rows)} rows because they have 0 prompt or 0 output tokens "
        f"(the first is line {rows.lines[first]})"
    )


def _requests(rows: TraceRows, kept: _Rows, settings: TraceSettings) -> list[Request]:
    if len(kept) == 0:
        return []
    # Whole ticks are subtracted before anything becomes a float, so gaps keep every digit of the file.
    if settings.origin == "first_row":
        file_s = (rows.time[kept] - rows.time[kept[0]]) / rows.ticks_per_s
    else:
        file_s = rows.time[kept] / rows.ticks_per_s - settings.start_s
    with np.errstate(over="ignore"):
        arrival_s = file_s / settings.rate_scale
    if arrival_s[-1] > LONGEST_S:
        raise InputError(
            f"trace.rate_scale: {settings.rate_scale:g} puts the last arrival of {rows.label} at "
            f"{arrival_s[-1]:g} s, at most {LONGEST_S:g} s is allowed"
        )
    return [
        Request(
            str(row) if rows.request_id is None else rows.request_id[row],
            at_s,
            int(rows.prompt_tokens[row]),
            int(rows.output_tokens[row]),
            0 if rows.priority is None else int(rows.priority[row]),
            _deadline_s(rows, row, at_s),
            None if rows.request_class is None else rows.request_class[row],
        )
        for row, at_s in zip(kept.tolist(), arrival_s.tolist(), strict=True)
    ]


def _deadline_s(rows: TraceRows, row: int, arrival_s: float) -> float | None:
    """Return the deadline on the run's clock: as long after arrival as in the file, whatever rate_scale."""
    if rows.deadline_s is None or np.isnan(rows.deadline_s[row]):
        return None
    moved_s = float(rows.time[row]) / rows.ticks_per_s - arrival_s
    return float(rows.deadline_s[row]) - moved_s
