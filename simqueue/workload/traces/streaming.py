"""A trace that is read while it is replayed: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.workload.traces.base import TraceRows
from simqueue.workload.traces.readers import read_chunks
from simqueue.workload.traces.replay import about_zero_rows, nothing_left, outside, requests_of, unit_notes
from simqueue.workload.traces.settings import TraceSettings
from simqueue.workload.traces.times import Times

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
        self._look_through(str(settings.name or settings.path))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Request]:
        first_s: Fraction | None = None
        row_number = 0
        for rows, kept, _ in self._pieces():
            if len(kept):
                first_s = rows.time.at(kept[0]) if first_s is None else first_s
                ids = list(map(str, (kept + row_number).tolist()))
                yield from requests_of(rows, kept, ids, first_s, self._settings)
            row_number += len(rows)

    def _look_through(self, label: str) -> None:
        """Read the file once, to check and count its rows and to note what the user should know about it."""
        number = 0
        first_s = Fraction(0)
        notes: dict[str, None] = {}
        for rows, kept, zero in self._pieces():
            first_s = rows.time.at(0) if number == 0 else first_s
            number += len(rows)
            self._count += len(kept)
            if len(zero) and not self.dropped_rows:
                about_zero_rows(rows, zero, self._settings)  # an error, if the settings want one
            self.dropped_rows += len(zero)
            notes |= dict.fromkeys(rows.notes)
        last_s = rows.time.at(-1)  # a file without rows is an error of its reader
        self._check_number(label, f"the rows read are from 0 to {float(last_s - first_s):g} s")
        if self.dropped_rows:
            notes[f"{label}: dropped {self.dropped_rows} rows because they have 0 prompt or 0 output tokens"] = None
        notes |= dict.fromkeys(unit_notes(rows, number, first_s, last_s))
        self.notes = tuple(notes)

    def _check_number(self, label: str, span: str) -> None:
        if self._stop is not None and self._count < self._stop:
            path = ("trace", "limit") if self._stop == self._settings.limit else ("num_requests",)
            raise InputError(f"{self._stop} requests are needed, {label} has {self._count} that can be used", *path)
        if self._count == 0 and self.dropped_rows:
            raise nothing_left(label, self.dropped_rows)
        if self._count == 0 and self._settings.thin is None:
            raise outside(label, self._settings, span)

    def _pieces(self) -> Iterator[tuple[TraceRows, NDArray[np.intp], NDArray[np.intp]]]:
        """Yield rows, the numbers of those that are used, and of those that are dropped because they have no tokens."""
        settings, thin_rng = self._settings, self._thin_rng()
        start_s: Fraction | None = None
        before: Times | None = None
        left = self._stop
        for rows in read_chunks(settings, self._base_dir, ROWS_AT_ONCE):
            start_s = rows.time.at(0) if start_s is None else start_s
            _check_order(rows, before)
            before = rows.time[-1:]
            since_s = rows.time.since_s(start_s)
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


def _check_order(rows: TraceRows, before: Times | None) -> None:
    """Check that rows are in order of time; `before` is the time of the row before them."""
    if before is not None and before.dated != rows.time.dated:
        raise rows.wrong(0, "some times of this file are dates and some are numbers")
    ticks = rows.time.ticks
    earlier = np.flatnonzero(ticks[1:] < ticks[:-1]) + 1
    if before is not None and rows.time.at(0) < before.at(0):
        earlier = np.array([0])
    if len(earlier):
        raise rows.wrong(int(earlier[0]), "this row is earlier than the one before; stream: true needs rows in order")
