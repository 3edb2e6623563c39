"""From the rows of a trace to requests: order, window, thinning, rows without tokens, limit, arrival times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
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
from simqueue.workload.traces.units import about_unit

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
    notes += unit_notes(rows, len(rows), *_ends(rows))
    order = _in_order(rows, notes)
    if settings.spread_s is not None:
        rows = _spread(rows, order, settings.spread_s, streams.spread)
        order = np.argsort(rows.time.ticks, kind="stable")
    chosen = _in_window(rows, settings, order, notes)
    if settings.thin is not None:
        chosen = chosen[streams.thin.random(len(rows))[chosen] < settings.thin]
    empty = (rows.prompt_tokens[chosen] == 0) | (rows.output_tokens[chosen] == 0)
    whole = chosen[~empty]
    if len(chosen) and not len(whole):
        raise nothing_left(rows.label, len(chosen))
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


def unit_notes(rows: TraceRows, number: int, first_s: Fraction, last_s: Fraction) -> list[str]:
    """Return what the reader noted about a file, and whether the unit of its times can be right."""
    doubt = None if rows.unit is None else about_unit(rows.label, rows.unit, number, first_s, last_s)
    return [*rows.notes, *([] if doubt is None else [doubt])]


def nothing_left(label: str, number: int) -> InputError:
    """Return the error about a trace of which no row has tokens."""
    return InputError(f"{label}: none of {number} rows can be used, because they have 0 prompt or 0 output tokens")


def _ends(rows: TraceRows) -> tuple[Fraction, Fraction]:
    """Return the earliest and the latest time."""
    return rows.time.at(int(np.argmin(rows.time.ticks))), rows.time.at(int(np.argmax(rows.time.ticks)))


def _in_order(rows: TraceRows, notes: list[str]) -> _Rows:
    """Return the rows in order of time; rows with equal times keep the order of the file."""
    ticks = rows.time.ticks
    latest = np.maximum.accumulate(ticks)
    late = np.flatnonzero(ticks[1:] < latest[:-1]) + 1
    if len(late) == 0:
        return np.arange(len(rows))
    notes.append(
        f"{rows.label}: {len(late)} of {len(rows)} rows were not in order of time and were sorted "
        f"(the first is {rows.name_of(late[0])})"
    )
    return np.argsort(ticks, kind="stable")


def _spread(rows: TraceRows, order: _Rows, spread_s: float, rng: np.random.Generator) -> TraceRows:
    """Return the rows with equal timestamps at random times after it, in their present order."""
    times = rows.time
    since = (times.ticks[order] - times.ticks[order[0]]).astype(np.float64)
    stamps, groups = np.unique(since, return_inverse=True)
    # at most to the next timestamp, so that rows keep their order
    widths = np.minimum(np.diff(stamps, append=np.inf), spread_s * times.ticks_per_s)
    shares = rng.random(len(rows))
    # Sorting by group, then by share, gives each group its own shares in ascending order.
    sorted_shares = shares[np.lexsort((shares, groups))]
    moved = np.empty(len(rows))
    moved[order] = since + sorted_shares * widths[groups]
    return replace(rows, time=replace(times, ticks=moved, origin_s=times.at(order[0])))


def _in_window(rows: TraceRows, settings: TraceSettings, order: _Rows, notes: list[str]) -> _Rows:
    since_first_s = rows.time.since_s(rows.time.at(order[0]), order)
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
        raise outside(rows.label, settings, span)
    return chosen


def outside(label: str, settings: TraceSettings, span: str) -> InputError:
    """Return the error about windows with no row; `span` says where the rows are."""
    end_s = np.inf if settings.end_s is None else settings.end_s
    by_row = "" if settings.start_row == 0 and settings.end_row is None else " and in the window of rows"
    text = f"{label}: no row is between start_s {settings.start_s:g} and end_s {end_s:g}{by_row}; {span}"
    return InputError(text, "trace")


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
        f"or 0 output tokens (the first is {rows.name_of(first)})"
    )


def _requests(rows: TraceRows, kept: _Rows, settings: TraceSettings, notes: list[str]) -> list[Request]:
    if len(kept) == 0:
        return []
    ids = row_ids(rows, kept, rename=settings.duplicate_ids == "rename", notes=notes)
    return requests_of(rows, kept, ids, rows.time.at(kept[0]), settings)


def requests_of(
    rows: TraceRows, kept: _Rows, ids: Sequence[str], first_s: Fraction, settings: TraceSettings
) -> list[Request]:
    """Return one request per row that is kept; `first_s` is the time of the first row that is used."""
    zero_s = _zero_s(rows, first_s, settings)
    arrival_s = _arrivals_s(rows, kept, zero_s, settings)
    columns = (ids, arrival_s.tolist(), rows.prompt_tokens[kept].tolist(), rows.output_tokens[kept].tolist())
    if not rows.more and not rows.moments:
        return [Request(*values) for values in zip(*columns, strict=True)]
    moments = _moments_s(rows, kept, zero_s, arrival_s, settings)
    return [
        Request(*values, **_more(rows, row, moments, position))
        for position, (row, values) in enumerate(zip(kept.tolist(), zip(*columns, strict=True), strict=True))
    ]


def _zero_s(rows: TraceRows, first_s: Fraction, settings: TraceSettings) -> Fraction:
    """Return the time of the file that is time 0 of the run."""
    if settings.origin == "first_row":
        return first_s
    if rows.time.dated:
        raise InputError(f"{rows.label} has dates; cannot be combined with origin: file", "trace", "origin")
    return Fraction(repr(settings.start_s))


def _arrivals_s(rows: TraceRows, kept: _Rows, zero_s: Fraction, settings: TraceSettings) -> NDArray[np.float64]:
    """Return the arrival times of rows in the run, in seconds."""
    with np.errstate(over="ignore"):
        arrival_s = np.asarray(rows.time.since_s(zero_s, kept) / settings.rate_scale)
    if len(arrival_s) and arrival_s[-1] > LONGEST_S:
        limit = f"the last arrival of {rows.label} at {arrival_s[-1]:g} s, at most {LONGEST_S:g} s is allowed"
        if settings.rate_scale == 1:
            raise InputError(f"{limit}; is the unit of its times right?")
        raise InputError(f"{settings.rate_scale:g} puts {limit}", "trace", "rate_scale")
    return arrival_s


def _moments_s(
    rows: TraceRows, kept: _Rows, zero_s: Fraction, arrival_s: NDArray[np.float64], settings: TraceSettings
) -> dict[str, list[Any]]:
    """Return the further times of rows; their distance from the arrival is that of the file, at any `rate_scale`."""
    found: dict[str, list[Any]] = {}
    for name, moments in rows.moments.items():
        after = moments.after[kept]
        if settings.rate_scale == 1:  # rounded once, so that a run that was exported is played to the last digit
            moment_s = rows.time.since_s(zero_s, kept, after)
        else:
            moment_s = arrival_s + rows.time.lengths_s(after)
        given = moments.given[kept].tolist()
        found[name] = [value if there else None for value, there in zip(moment_s.tolist(), given, strict=True)]
    return found


def _more(rows: TraceRows, row: int, moments: Mapping[str, Sequence[Any]], position: int) -> dict[str, Any]:
    """Return the further attributes of a row."""
    values = {name: column[row] for name, column in rows.more.items() if name != "request_id"}
    values |= {name: column[position] for name, column in moments.items()}
    return {name: value for name, value in values.items() if value is not None}


def _repeated(once: list[Request], rows: TraceRows, kept: _Rows, settings: TraceSettings, number: int) -> list[Request]:
    """Return the requests several times; each pass starts one mean gap after the last arrival of the one before."""
    if not once:
        return []
    file_s = float(rows.time.since_s(rows.time.at(kept[0]), kept[-1:])[0]) / settings.rate_scale
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
