"""A trace that is read while it is replayed: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.workload.traces.base import TraceRows
from simqueue.workload.traces.readers import read_chunks
from simqueue.workload.traces.replay import about_zero_rows, arrivals_s, requests_of
from simqueue.workload.traces.settings import TraceSettings

ROWS_AT_ONCE = 16_384


class StreamedTrace:
    """Requests of a trace, read from the file each time they are iterated over.

    The file is read once at the start, to check it and to count its rows. So errors in it are found before the run.

    Parameters
    ----------
    settings : TraceSettings
        With ``stream: true``.
    base_dir : Path
    thin_rng : callable
        Returns the random stream that decides which rows are kept, at its beginning.
    num_requests : int or None

    Raises
    ------
    InputError
        If the file does not follow its format, is not in order of time, or has fewer rows than needed.
    """

    def __init__(
        self,
        settings: TraceSettings,
        base_dir: Path,
        thin_rng: Callable[[], np.random.Generator],
        num_requests: int | None = None,
    ) -> None:
        self._settings, self._base_dir, self._thin_rng = settings, base_dir, thin_rng
        self._stop = min((n for n in (settings.limit, num_requests) if n is not None), default=None)
        self.dropped_rows = 0
        self.notes: tuple[str, ...] = ()
        self._count = 0
        for rows, kept, zero in self._pieces():
            self._count += len(kept)
            if len(zero) and not self.notes:
                self.notes = (about_zero_rows(rows, zero, settings),)
            self.dropped_rows += len(zero)
        label = settings.name or settings.path
        if self.dropped_rows:
            self.notes = (f"{label}: dropped {self.dropped_rows} rows because they have 0 prompt or 0 output tokens",)
        if self._stop is not None and self._count < self._stop:
            path = ("trace", "limit") if self._stop == settings.limit else ("num_requests",)
            raise InputError(f"{self._stop} requests are needed, {label} has {self._count} that can be used", *path)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Request]:
        first = None
        row_number = 0
        for rows, kept, _ in self._pieces():
            if len(kept):
                first = rows.time[kept[0]] if first is None else first
                ids = list(map(str, (kept + row_number).tolist()))
                yield from requests_of(rows, kept, ids, arrivals_s(rows, kept, first, self._settings))
            row_number += len(rows)

    def _pieces(self) -> Iterator[tuple[TraceRows, NDArray[np.intp], NDArray[np.intp]]]:
        """Yield rows, the numbers of those that are used, and of those that are dropped because they have no tokens."""
        settings, thin_rng = self._settings, self._thin_rng()
        start = last = None
        left = self._stop
        for rows in read_chunks(settings, self._base_dir, ROWS_AT_ONCE):
            time = rows.time
            start = time[0] if start is None else start
            _check_order(rows, time[0] if last is None else last)
            last = time[-1]
            since_s = (time - start) / rows.ticks_per_s
            end_s = np.inf if settings.end_s is None else settings.end_s
            inside = (since_s >= settings.start_s) & (since_s < end_s)
            if settings.thin is not None:
                inside &= thin_rng.random(len(rows)) < settings.thin
            empty = (rows.prompt_tokens == 0) | (rows.output_tokens == 0)
            kept = np.flatnonzero(inside & ~empty)[:left]
            zero = np.flatnonzero(inside & empty)
            if left is not None:
                left -= len(kept)
                zero = zero[zero < kept[-1]] if left == 0 and len(kept) else zero
            yield rows, kept, zero
            if left == 0 or since_s[-1] >= end_s:
                return


def _check_order(rows: TraceRows, last: float) -> None:
    earlier = np.flatnonzero(np.diff(rows.time, prepend=last) < 0)
    if len(earlier):
        raise rows.wrong(int(earlier[0]), "this row is earlier than the one before; stream: true needs rows in order")
