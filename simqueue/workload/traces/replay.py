"""From the rows of a trace to requests: order, window, thinning, rows without tokens, limit, arrival times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.workload.limits import LONGEST_S, MOST_REQUESTS
from simqueue.workload.traces.base import MOMENTS, TraceRows
from simqueue.workload.traces.ids import row_ids
from simqueue.workload.traces.readers import read_chunks
from simqueue.workload.traces.settings import TraceSettings

_Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Replay:
    """Requests of a trace.

    Attributes
    ----------
    requests : list of Request
        In order of arrival.
    notes : tuple of str
        One line each on rows that were sorted, dropped or renamed, and on windows that reach beyond the file.
    dropped_rows : int
        Rows dropped because they have no prompt or no output tokens.
    """

    requests: list[Request]
    notes: tuple[str, ...]
    dropped_rows: int


@dataclass(frozen=True, slots=True)
class TraceStreams:
    """The random streams of a trace.

    Attributes
    ----------
    thin : numpy.random.Generator
        Decides which rows `thin` keeps. It takes one number for each row of the file, so a smaller share keeps a subset
        of the rows of a larger share, for any window.
    spread : numpy.random.Generator
        Spreads rows with equal timestamps; one number per row.
    """

    thin: np.random.Generator
    spread: np.random.Generator


def replay(settings: TraceSettings, base_dir: Path, streams: TraceStreams, num_requests: int | None = None) -> Replay:
    """Return the requests that the settings select from their trace.

    Parameters
    ----------
    settings : TraceSettings
        The file, the part of it, and the rate.
    base_dir : Path
        The folder that relative paths start from.
    streams : TraceStreams
    num_requests : int or None
        Number of requests to take; None: all.

    Raises
    ------
    InputError
        If the file does not follow its format, or has fewer rows than needed.
    """
    (rows,) = read_chunks(settings, base_dir)
    notes: list[str] = []
    order = _in_order(rows, notes)
    if settings.spread_s is not None:
        rows = _spread(rows, order, settings.spread_s, streams.spread)
        order = np.argsort(rows.time, kind="stable")
    chosen = _in_window(rows, settings, order, notes)
    if settings.thin is not None:
        chosen = chosen[streams.thin.random(len(rows))[chosen] < settings.thin]
    empty = (rows.prompt_tokens[chosen] == 0) | (rows.output_tokens[chosen] == 0)
    whole = chosen[~empty]
    number = _number(rows, whole, settings, num_requests)
    kept = whole[:number]
    # Rows without tokens count only up to the last row that is used: later ones are not needed.
    zero = chosen[empty] if number >= len(whole) else _before(chosen, empty, kept)
    if len(zero):
        notes.append(about_zero_rows(rows, zero, settings))
    requests = _requests(rows, kept, settings, notes)
    if settings.repeat > 1:
        requests = _repeated(requests, rows, kept, settings, number)
    return Replay(requests, tuple(notes), len(zero))


def _in_order(rows: TraceRows, notes: list[str]) -> _Rows:
    """Return the rows in order of time; rows with equal times keep the order of the file."""
    latest = np.maximum.accumulate(rows.time)
    late = np.flatnonzero(rows.time[1:] < latest[:-1]) + 1
    if len(late) == 0:
        return np.arange(len(rows))
    notes.append(
        f"{rows.label}: {len(late)} of {len(rows)} rows were not in order of time and were sorted "
        f"(the first is line {rows.lines[late[0]]})"
    )
    return np.argsort(rows.time, kind="stable")


def _spread(rows: TraceRows, order: _Rows, spread_s: float, rng: np.random.Generator) -> TraceRows:
    """Return the rows with equal timestamps at random times after it, in their present order."""
    since = (rows.time[order] - rows.time[order[0]]).astype(np.float64)
    stamps, groups = np.unique(since, return_inverse=True)
    # at most to the next timestamp, so that rows keep their order
    widths = np.minimum(np.diff(stamps, append=np.inf), spread_s * rows.ticks_per_s)
    shares = rng.random(len(rows))
    # Sorting by group, then by share, gives each group its own shares in ascending order.
    sorted_shares = shares[np.lexsort((shares, groups))]
    moved = np.empty(len(rows))
    moved[order] = since + sorted_shares * widths[groups]
    return replace(rows, time=moved + rows.time[order[0]])


def _in_window(rows: TraceRows, settings: TraceSettings, order: _Rows, notes: list[str]) -> _Rows:
    since_first_s = (rows.time[order] - rows.time[order[0]]) / rows.ticks_per_s
    end_s = np.inf if settings.end_s is None else settings.end_s
    end_row = len(rows) if settings.end_row is None else settings.end_row
    span = f"its {len(rows)} rows are from 0 to {since_first_s[-1]:g} s"
    if settings.end_s is not None and end_s > since_first_s[-1]:
        notes.append(f"{rows.label}: end_s {end_s:g} is after the last row; {span}")
    if end_row > len(rows):
        notes.append(f"{rows.label}: end_row {end_row} is after the last row; {span}")
    number = np.arange(len(rows))
    in_time = (since_first_s >= settings.start_s) & (since_first_s < end_s)
    chosen: _Rows = order[in_time & (number >= settings.start_row) & (number < end_row)]
    if len(chosen) == 0:
        by_row = "" if settings.start_row == 0 and settings.end_row is None else " and the window of rows"
        notes.append(
            f"{rows.label}: no row is between start_s {settings.start_s:g} and end_s {end_s:g}{by_row}; {span}"
        )
    return chosen


def _number(rows: TraceRows, whole: _Rows, settings: TraceSettings, num_requests: int | None) -> int:
    """Return the number of requests; InputError if it is smaller than `limit` or `num_requests`."""
    available = len(whole) * settings.repeat
    if available > MOST_REQUESTS:
        raise InputError(f"{available:.3g} requests, at most {MOST_REQUESTS} are allowed", "trace", "repeat")
    keys = {("trace", "limit"): settings.limit, ("num_requests",): num_requests}
    needed = {path: number for path, number in keys.items() if number is not None}
    for path, number in needed.items():
        if number > available:
            raise InputError(f"{number} requests are needed, {_supply(rows, len(whole), settings.repeat)}", *path)
    if settings.limit is not None and num_requests is not None and num_requests > settings.limit:
        raise InputError(f"{num_requests} requests are needed, trace.limit allows {settings.limit}", "num_requests")
    return min(needed.values(), default=available)


def _supply(rows: TraceRows, usable: int, repeat: int) -> str:
    """Return how many requests a trace has, in words."""
    left = "" if usable == len(rows) else f", of which {usable} can be used"
    times = f" (repeat {repeat} makes {usable * repeat})" if repeat > 1 else ""
    return f"{rows.label} has {len(rows)} rows{left}{times}"


def _before(chosen: _Rows, empty: NDArray[np.bool_], kept: _Rows) -> _Rows:
    end = int(np.flatnonzero(chosen == kept[-1])[0])
    return chosen[:end][empty[:end]]


def about_zero_rows(rows: TraceRows, zero: _Rows, settings: TraceSettings, *, total: int | None = None) -> str:
    """Return the note on dropped rows; InputError with ``zero_token_rows: fail``."""
    first = int(zero[0])
    if settings.zero_token_rows == "fail":
        raise rows.wrong(
            first,
            f"prompt {rows.prompt_tokens[first]} and output {rows.output_tokens[first]} tokens; both must be at "
            "least 1 (zero_token_rows: drop drops such rows)",
        )
    return (
        f"{rows.label}: dropped {len(zero)} of {len(rows) if total is None else total} rows because they have 0 prompt "
        f"or 0 output tokens (the first is line {rows.lines[first]})"
    )


def _requests(rows: TraceRows, kept: _Rows, settings: TraceSettings, notes: list[str]) -> list[Request]:
    if len(kept) == 0:
        return []
    ids = row_ids(rows, kept, rename=settings.duplicate_ids == "rename", notes=notes)
    return requests_of(rows, kept, ids, arrivals_s(rows, kept, rows.time[kept[0]], settings))


def arrivals_s(rows: TraceRows, kept: _Rows, first: Any, settings: TraceSettings) -> NDArray[np.float64]:
    """Return the arrival times of rows in the run, in seconds; `first` is the time of the first row that is used."""
    # Integer ticks are subtracted before they become floats, so gaps keep every digit of the file.
    if settings.origin == "first_row":
        file_s = (rows.time[kept] - first) / rows.ticks_per_s
    else:
        file_s = rows.time[kept] / rows.ticks_per_s - settings.start_s
    with np.errstate(over="ignore"):
        arrival_s = np.asarray(file_s / settings.rate_scale)
    if len(arrival_s) and arrival_s[-1] > LONGEST_S:
        raise InputError(
            f"{settings.rate_scale:g} puts the last arrival of {rows.label} at {arrival_s[-1]:g} s, at most "
            f"{LONGEST_S:g} s is allowed",
            "trace",
            "rate_scale",
        )
    return arrival_s


def requests_of(rows: TraceRows, kept: _Rows, ids: Sequence[str], arrival_s: NDArray[np.float64]) -> list[Request]:
    """Return one request per row."""
    columns = (ids, arrival_s.tolist(), rows.prompt_tokens[kept].tolist(), rows.output_tokens[kept].tolist())
    if not rows.more:
        return [Request(*values) for values in zip(*columns, strict=True)]
    return [
        Request(*values, **_more(rows, row, values[1]))
        for row, values in zip(kept.tolist(), zip(*columns, strict=True), strict=True)
    ]


def _more(rows: TraceRows, row: int, arrival_s: float) -> dict[str, Any]:
    """Return the further attributes of a row; the distance of its moments from the arrival is that of the file."""
    found = {}
    for name, column in rows.more.items():
        value = column[row]
        if value is None or name == "request_id":
            continue
        if name in MOMENTS:
            value = float(value) - (float(rows.time[row]) / rows.ticks_per_s - arrival_s)
        found[name] = value
    return found


def _repeated(once: list[Request], rows: TraceRows, kept: _Rows, settings: TraceSettings, number: int) -> list[Request]:
    """Return the requests several times; each pass starts one mean gap after the last arrival of the one before."""
    if not once:
        return []
    file_s = float((rows.time[kept[-1]] - rows.time[kept[0]]) / rows.ticks_per_s) / settings.rate_scale
    if file_s <= 0:
        text = f"all used rows of {rows.label} have one time, so they cannot be repeated"
        raise InputError(text, "trace", "repeat")
    pass_s = file_s * len(once) / (len(once) - 1)
    streams = 1 + max((stream for request in once for stream in _streams(request)), default=-1)
    requests = list(once)
    for number_of_pass in range(1, -(-number // len(once))):
        requests += [_in_later_pass(request, number_of_pass, pass_s, streams) for request in once]
    return requests[:number]


def _streams(request: Request) -> Iterator[int]:
    yield from (stream for stream, _, _ in request.prompt or ())
    if request.output_stream is not None:
        yield request.output_stream


def _in_later_pass(request: Request, number: int, pass_s: float, streams: int) -> Request:
    """Return a request of a later pass: with another id, a later arrival, and token streams of its own."""
    later_s = number * pass_s
    moments: dict[str, Any] = {name: getattr(request, name) for name in MOMENTS}
    changed: dict[str, Any] = {name: None if moment is None else moment + later_s for name, moment in moments.items()}
    return replace(
        request.with_streams_moved(number * streams),
        request_id=f"{request.request_id}@{number}",
        arrival_s=request.arrival_s + later_s,
        session=None if request.session is None else f"{request.session}@{number}",
        **changed,
    )
