"""Mooncake traces: milliseconds, token counts, and hash ids of the blocks of a prompt.

Source of the format: github.com/kvcache-ai/Mooncake, FAST25-release. Two rows whose lists begin with the same ids have
a prefix in common. An id stands for a block of the trace (512 tokens in the published files; the last block of a prompt
can be shorter), which is independent of the block size of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from simqueue.workload.traces.base import TraceRows, times, token_counts
from simqueue.workload.traces.formats import ReadOptions
from simqueue.workload.traces.jsonlines import JsonTable, read_json_tables


class MooncakeReader:
    """Reader of ``{"timestamp": .., "input_length": .., "output_length": .., "hash_ids": [..]}``, one per line.

    If the whole file has no hash_ids, prompts have nothing in common.
    """

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; block k of a prompt is stream hash_ids[k]."""
        for table in read_json_tables(path, label, "mooncake", at_once):
            yield _rows(table, options.block_tokens)


def _rows(table: JsonTable, block_tokens: int | None) -> TraceRows:
    prompt_tokens = token_counts(table, "input_length")
    rows = TraceRows(
        table.label, table.lines, times(table, "timestamp"), 1000, prompt_tokens, token_counts(table, "output_length")
    )
    if "hash_ids" not in table.names or block_tokens is None:
        return rows
    lists, lengths = table.cells("hash_ids"), prompt_tokens.tolist()
    return replace(
        rows, more={"prompt": [_prompt(rows, row, ids, lengths[row], block_tokens) for row, ids in enumerate(lists)]}
    )


def _prompt(rows: TraceRows, row: int, ids: Any, tokens: int, block: int) -> tuple[tuple[int, int, int], ...]:
    if not isinstance(ids, list) or not all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in ids):
        raise rows.wrong(row, "hash_ids must be a list of integers of at least 0")
    needed = -(-tokens // block)
    if len(ids) != needed:
        raise rows.wrong(
            row,
            f"input_length {tokens} at block_tokens {block} needs {needed} hash_ids, the row has {len(ids)}",
        )
    segments = [(number, 0, block) for number in ids]
    if ids:
        segments[-1] = (ids[-1], 0, tokens - block * (needed - 1))
    return tuple(segments)
