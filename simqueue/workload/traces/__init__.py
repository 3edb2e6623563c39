"""Recorded traces: a reader a format, packaged traces by name, and the rules by which rows become requests."""

from simqueue.workload.traces.base import TraceReader, TraceRows
from simqueue.workload.traces.catalog import PackagedTrace, TraceSummary, packaged_trace, trace_names, trace_rows
from simqueue.workload.traces.settings import TraceSettings

__all__ = [
    "PackagedTrace",
    "TraceReader",
    "TraceRows",
    "TraceSettings",
    "TraceSummary",
    "packaged_trace",
    "trace_names",
    "trace_rows",
]
