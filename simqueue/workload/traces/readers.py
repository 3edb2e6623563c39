"""The registry of trace readers by format name."""

from __future__ import annotations

from simqueue.workload.traces.azure import AzureReader
from simqueue.workload.traces.base import TraceReader
from simqueue.workload.traces.plain import PlainReader

READERS: dict[str, TraceReader] = {"azure": AzureReader(), "csv": PlainReader()}
"""Every format that can be read."""
