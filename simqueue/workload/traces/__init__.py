"""Recorded traces: a reader a format, packaged traces by name, and the rules by which rows become requests."""

from simqueue.workload.traces.base import TraceReader, TraceRows
from simqueue.workload.traces.catalog import PackagedTrace, TraceSummary, packaged_trace, trace_names, trace_rows
from simqueue.workload.traces.readers import READERS
from simqueue.workload.traces.replay import Luck, Replay, read_chunks, replay
from simqueue.workload.traces.settings import TraceSettings
from simqueue.workload.traces.streaming import StreamedTrace

__all__ = [
    "READERS",
    "Luck",
    "PackagedTrace",
    "Replay",
    "StreamedTrace",
    "TraceReader",
    "TraceRows",
    "TraceSettings",
    "TraceSummary",
    "packaged_trace",
    "read_chunks",
    "replay",
    "trace_names",
    "trace_rows",
]
