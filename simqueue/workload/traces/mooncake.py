"""Mooncake traces: milliseconds, token counts, and hash ids of the blocks that a prompt is made of.

Source of the format: github.com/kvcache-ai/Mooncake, FAST25-release. Two rows whose lists begin with the same ids have
a prefix in common: an id stands for a block of the trace (512 tokens in the published files; the last one of a prompt
is cut short), which has nothing to do with the block size of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simqueue.workload.traces.base import ReadOptions, TraceRows
from simqueue.workload.traces.jsonlines import JsonTable, read_json_tables

PUBLISHED_BLOCK_TOKENS = 512


class MooncakeReader:
    """Reader of ``{"timestamp": .., "input_length": .., "output_length": .., "hash_ids": [..]}``, one a line.

    Without hash_ids in the whole file prompts have nothing in common.
    """

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; block k of a prompt is stream hash_ids[k]."""
        for table in read_json_tables(path, label, "mooncake", at_once):
            yield _rows(table, options.block_tokens)


def _rows(table: JsonTable, block_tokens: int | None) -> TraceRows:
    prompt_tokens = table.integers("input_length")
    rows = TraceRows(
        table.label,
        table.lines,
        table.floats("timestamp", least=0),
        1000,
        prompt_tokens,
        table.integers("output_length"),
    )
    if "hash_ids" not in table.columns or block_tokens is None:
        return rows
    lists, lengths = table.cells("hash_ids"), prompt_tokens.tolist()
    prompts = [_prompt(rows, row, ids, lengths[row], block_tokens) for row, ids in enumerate(lists)]
    return TraceRows(
        rows.label, rows.lines, rows.time, rows.ticks_per_s, prompt_tokens, rows.output_tokens, {"prompt": prompts}
    )


def _prompt(rows: TraceRows, row: int, ids: Any, tokens: int, block: int) -> tuple[tuple[int, int, int], ...]:
    if not isinstance(ids, list) or not all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in ids):
        raise rows.wrong(row, "hash_ids must be a list of whole numbers of at least 0")
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
