"""Recorded traces: a reader for each format, packaged traces by name, and the rules that turn rows into requests."""

from simqueue.workload.traces.settings import TraceSettings

__all__ = ["TraceSettings"]
