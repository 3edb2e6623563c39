"""Summaries of the packaged traces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simqueue.workload.traces.catalog import PackagedTrace, packaged_trace, trace_names
from simqueue.workload.traces.formats import FORMATS, ReadOptions
from simqueue.workload.traces.readers import READERS


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One row of the list of traces.

    Attributes
    ----------
    name : str
        As in ``trace: {name: ...}``.
    rows : int
        Requests in the file.
    span_s : float
        Seconds from the first arrival to the last.
    mean_rate_rps : float or None
        Number of gaps over the span; None if there are fewer than two different times.
    licence, source : str
        Licence of the file, and where it is from.
    """

    name: str
    rows: int
    span_s: float
    mean_rate_rps: float | None
    licence: str
    source: str


def trace_rows() -> list[TraceSummary]:
    """Return one summary for each packaged trace, computed from its file."""
    return [_summary(packaged_trace(name)) for name in trace_names()]


def _summary(trace: PackagedTrace) -> TraceSummary:
    options = ReadOptions(unit=FORMATS[trace.format].unit or "s")
    (rows,) = READERS[trace.format].chunks(trace.path, trace.name, options, None)
    span_s = float(rows.time.since_s(rows.time.at(int(np.argmin(rows.time.ticks)))).max())
    rate = (len(rows) - 1) / span_s if span_s > 0 else None
    return TraceSummary(trace.name, len(rows), span_s, rate, trace.licence, trace.source)
