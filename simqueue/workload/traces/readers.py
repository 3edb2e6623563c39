"""The registry of trace readers by format name."""

from __future__ import annotations

from simqueue.workload.traces.azure import AzureReader
from simqueue.workload.traces.base import TraceReader
from simqueue.workload.traces.burstgpt import BurstGptReader
from simqueue.workload.traces.mooncake import MooncakeReader
from simqueue.workload.traces.plain import JsonLinesReader, PlainReader
from simqueue.workload.traces.vllmbench import VllmBenchReader

READERS: dict[str, TraceReader] = {
    "azure": AzureReader(),
    "burstgpt": BurstGptReader(),
    "mooncake": MooncakeReader(),
    "csv": PlainReader(),
    "jsonl": JsonLinesReader(),
    "vllm-bench": VllmBenchReader(),
}
"""Every format that can be read."""
