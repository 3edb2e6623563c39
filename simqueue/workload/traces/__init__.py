"""Recorded traces: a reader a format, packaged traces by name, and the rules by which rows become requests."""

from simqueue.workload.traces.base import TraceReader, TraceRows
from simqueue.workload.traces.catalog import PackagedTrace, TraceSummary, packaged_trace, trace_names, trace_rows
from simqueue.workload.traces.readers import READERS
from simqueue.workload.traces.replay import Replay, read_trace, replay
from simqueue.workload.traces.settings import TraceSettings

__all__ = [
    "READERS",
    "PackagedTrace",
    "Replay",
    "TraceReader",
    "TraceRows",
    "TraceSettings",
    "TraceSummary",
    "packaged_trace",
    "read_trace",
    "replay",
    "trace_names",
    "trace_rows",
]
