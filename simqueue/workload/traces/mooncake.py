"""Traces with hash ids of the blocks of a prompt: Mooncake (milliseconds) and Alibaba's Bailian service (seconds).

Sources of the formats: github.com/kvcache-ai/Mooncake, FAST25-release, and
github.com/alibaba-edu/qwen-bailian-usagetraces-anon. Two rows whose lists begin with the same ids have a prefix in
common. An id stands for a block of the trace (512 tokens in the files of Mooncake, 16 in those of Bailian; the last
block of a prompt can be shorter), which is independent of the block size of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from simqueue.workload.traces.base import TraceRows, token_counts
from simqueue.workload.traces.formats import UNITS_PER_S, ReadOptions
from simqueue.workload.traces.jsonlines import JsonTable, read_json_tables
from simqueue.workload.traces.timecells import read_times

_CHAT = "chat_id"


class MooncakeReader:
    """Reader of ``{"timestamp": .., "input_length": .., "output_length": .., "hash_ids": [..]}``, one per line.

    If the whole file has no hash_ids, prompts have nothing in common.
    """

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; block k of a prompt is stream hash_ids[k]."""
        for table in read_json_tables(path, label, "mooncake", at_once):
            rows = _rows(table, options)
            yield rows if options.unit_given else replace(rows, notes=_doubts(table, rows))


class BailianReader:
    """Reader of the same keys with ``chat_id``, as the usage traces of Alibaba's Bailian service have them."""

    def chunks(self, path: Path, label: str, options: ReadOptions, at_once: int | None) -> Iterator[TraceRows]:
        """Yield the rows; block k of a prompt is stream hash_ids[k]."""
        for table in read_json_tables(path, label, "bailian", at_once):
            table.text(_CHAT)  # must be there
            yield _rows(table, options)


def _rows(table: JsonTable, options: ReadOptions) -> TraceRows:
    time, _ = read_times(table, "timestamp", options.unit, unit_given=options.unit_given)
    prompt_tokens = token_counts(table, "input_length")
    rows = TraceRows(
        table.label,
        table.lines,
        time,
        prompt_tokens,
        token_counts(table, "output_length"),
        unit=None if time.dated else options.unit,
    )
    block = options.block_tokens
    if "hash_ids" not in table.names or block is None:
        return rows
    lists, lengths = table.cells("hash_ids"), prompt_tokens.tolist()
    return replace(
        rows, more={"prompt": [_prompt(rows, row, ids, lengths[row], block) for row, ids in enumerate(lists)]}
    )


def _doubts(table: JsonTable, rows: TraceRows) -> tuple[str, ...]:
    """Return a note if something says that the times are not in milliseconds."""
    if rows.time.dated:
        return ()
    if _CHAT in table.names:
        sign = f"the file has {_CHAT}, as the traces of Alibaba's Bailian service have, which are in seconds"
    elif rows.time.ticks_per_s > UNITS_PER_S["ms"]:
        sign = "some have fractions of a millisecond"
    else:
        return ()
    return (f"{table.label}: its times are read as milliseconds, but {sign}: give time_unit, or format: bailian",)


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
