"""The trace readers by format name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simqueue.errors import naming
from simqueue.workload.traces.azure import AzureReader
from simqueue.workload.traces.base import TraceReader, TraceRows
from simqueue.workload.traces.burstgpt import BurstGptReader
from simqueue.workload.traces.catalog import packaged_trace
from simqueue.workload.traces.langsmith import LangSmithReader
from simqueue.workload.traces.mooncake import BailianReader, MooncakeReader
from simqueue.workload.traces.otlp import OtlpReader
from simqueue.workload.traces.plain import ArrowReader, JsonLinesReader, PlainReader
from simqueue.workload.traces.settings import TraceSettings
from simqueue.workload.traces.vllmbench import VllmBenchReader

READERS: dict[str, TraceReader] = {
    "azure": AzureReader(),
    "burstgpt": BurstGptReader(),
    "mooncake": MooncakeReader(),
    "bailian": BailianReader(),
    "csv": PlainReader(),
    "jsonl": JsonLinesReader(),
    "parquet": ArrowReader(),
    "huggingface": ArrowReader(),
    "vllm-bench": VllmBenchReader(),
    "otlp": OtlpReader(),
    "langsmith": LangSmithReader(),
}
"""Every format that can be read."""


def read_chunks(settings: TraceSettings, base_dir: Path, at_once: int | None = None) -> Iterator[TraceRows]:
    """Yield the rows of the file that the settings name, in file order, `at_once` at a time or all together.

    Raises
    ------
    InputError
        If the file is missing or does not follow its format.
    """
    path, label = (None, settings.name) if settings.name is not None else (settings.path, settings.path)
    file = packaged_trace(str(label)).path if path is None else base_dir / path
    with naming("trace", "path"):
        yield from READERS[settings.reader_name()].chunks(file, str(label), settings.read_options, at_once)
