"""Static batching: full waves, padded to their longest prompt, which last until their longest output."""

from __future__ import annotations

import math

from simqueue.errors import InputError
from simqueue.steptime.base import Batch, StepTime
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import Capacity, Resource, Server


def waves(step: StepTime, lengths: Lengths, server: Server) -> Capacity:
    """Return the capacity of static batching: full waves, padded to their longest prompt and longest output."""
    rows = _rows_that_fit(lengths, server)
    binding: Resource = "slots" if rows == server.max_num_seqs else "kv"
    prompt, output = lengths.longest(rows)
    low = math.floor(output)
    seconds = [wave_seconds(step, rows, round(prompt), n) for n in (low, low + 1)]
    wave_s = seconds[0] + (output - low) * (seconds[1] - seconds[0])
    rate = rows / wave_s
    return Capacity(rate, binding, {binding: rate}, output / rows, wave_s / output, float(rows))


def _rows_that_fit(lengths: Lengths, server: Server) -> int:
    """Return the rows of the largest wave; more rows need more blocks, and no smaller ones."""
    if server.kv_blocks is None:
        return server.max_num_seqs
    fits, too_many = 0, min(server.max_num_seqs, server.kv_blocks) + 1
    while too_many - fits > 1:
        rows = (fits + too_many) // 2
        if rows * _row_blocks(lengths, server, rows) <= server.kv_blocks:
            fits = rows
        else:
            too_many = rows
    if not fits:
        raise InputError(f"the KV pool of {server.kv_blocks} blocks cannot hold one average request")
    return fits


def _row_blocks(lengths: Lengths, server: Server, rows: int) -> int:
    """Return the blocks that a wave of `rows` requests needs for each of them."""
    prompt, output = lengths.longest(rows)
    tokens = server.reserve_tokens if isinstance(server.reserve_tokens, int) else prompt + output - 1
    return math.ceil(tokens / server.block_size)


def wave_seconds(step: StepTime, rows: int, prompt_tokens: int, output_tokens: int) -> float:
    """Return the duration in seconds of a padded wave of equal rows: its prefill and output_tokens - 1 decode steps."""
    prefill_s = step.seconds(Batch(prefill=((0, prompt_tokens),) * rows, sampled_rows=rows))
    if output_tokens <= 1:
        return prefill_s
    first = Batch(rows, rows, rows * (prompt_tokens + 1), sampled_rows=rows)
    return prefill_s + math.fsum(step.durations(first, output_tokens - 1))
