"""Traces of the Azure LLM inference service, 2023 and 2024: absolute dates and two token counts per row.

Source of the format: github.com/Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md and
AzureLLMInferenceDataset2024.md. The 2023 files have seven digits of fraction and CRLF line ends; in those of 2024 a
time zone can follow and the fraction can be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from simqueue.datafiles.csvtable import Table, read_tables
from simqueue.workload.traces.base import TraceRows, token_counts
from simqueue.workload.traces.formats import ReadOptions, guess_format
from simqueue.workload.traces.timecells import dates
from simqueue.workload.traces.timestamps import BadTimestampError


class AzureReader:
    """Reader of ``TIMESTAMP,ContextTokens,GeneratedTokens`` (see `TraceReader`)."""

    def chunks(self, path: Path, label: str, _options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; dates are exact."""
        return map(_rows, read_tables(path, label, partial(guess_format, expected="azure"), at_once=at_once))


def _rows(table: Table) -> TraceRows:
    texts = table.text("TIMESTAMP")
    prompt_tokens = token_counts(table, "ContextTokens")
    output_tokens = token_counts(table, "GeneratedTokens")
    try:
        time = dates(texts)
    except BadTimestampError as bad:
        raise table.wrong(bad.row, "TIMESTAMP", texts[bad.row], bad.allowed) from None
    return TraceRows(table.label, table.lines, time, prompt_tokens, output_tokens)
