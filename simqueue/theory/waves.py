"""Static batching: padded waves, which last until their longest output; and one slot, a wave of one request."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.steptime.base import Batch, StepTime
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import Capacity, Resource, Server

_NODES, _WEIGHTS = (np.polynomial.legendre.leggauss(6) + np.array([[1.0], [0.0]])) / 2
"""Gauss's rule between 0 and 1."""


def waves(step: StepTime, lengths: Lengths, server: Server) -> Capacity:
    """Return the capacity of static batching: full waves, whose longest prompt and longest output are independent."""
    rows = _rows_that_fit(lengths, server)
    binding: Resource = "slots" if rows == server.max_num_seqs else "kv"
    wave_s = _mean_seconds(step, lengths, rows)
    output = float(lengths.longest(rows)[1].mean())
    rate = rows / wave_s
    return Capacity(rate, binding, {binding: rate}, output / rows, wave_s / output, float(rows))


def one_by_one(step: StepTime, lengths: Lengths, server: Server) -> Capacity:
    """Return the capacity of a server with one slot: the mean time of a request, its prompt whole or in chunks.

    With chunks, the budget of a step is that of the only prompt in it.
    """
    prompts, outputs = lengths.longest(1)
    most = math.inf
    if server.batching == "chunked":
        most = min(server.max_num_batched_tokens or math.inf, server.chunk_tokens or math.inf)
    # The decode steps of all requests read this context on average, whether or not long prompts have long outputs.
    decodes = lengths.output - 1
    context = (lengths.product - lengths.prompt) / decodes if decodes > 0 else 0.0
    seconds = _mean(lambda prompt: _alone_seconds(step, prompt, most), prompts)
    seconds += _mean(lambda output: decode_seconds(step, 1, round(context), output, each=False), outputs)
    steps = lengths.output - 1 + float(np.maximum(1, np.ceil(prompts / most)).mean())
    return Capacity(1 / seconds, "slots", {"slots": 1 / seconds}, steps, seconds / steps, 1.0)


def _alone_seconds(step: StepTime, prompt_tokens: int, most: float) -> float:
    """Return the duration in seconds of the steps that compute a prompt alone, up to `most` tokens in each."""
    pasts = range(0, prompt_tokens, int(min(most, prompt_tokens)))
    pieces = ((past, int(min(most, prompt_tokens - past))) for past in pasts)
    return math.fsum(step.seconds(Batch(prefill=(one,), sampled_rows=1)) for one in pieces)


def best_waves(step: StepTime, lengths: Lengths, server: Server) -> Capacity:
    """Return the largest capacity with waves of at most `max_num_seqs` rows, a half of them, a quarter, and so on.

    Where a few requests are much longer than the others, more rows can cost more padding than they bring.
    """
    most = min(server.max_num_seqs, server.kv_blocks or server.max_num_seqs)
    found = [waves(step, lengths, replace(server, max_num_seqs=most >> i)) for i in range(most.bit_length())]
    return max(found, key=lambda one: one.max_rate_rps)


def _mean_seconds(step: StepTime, lengths: Lengths, rows: int) -> float:
    """Return the mean duration of a wave in seconds: of its prefill and of its decode steps, each by itself.

    A prefill is convex in the longest prompt. A decode step is nearly linear in the context, so that the mean prompt is
    enough for it.
    """
    prompts, outputs = lengths.longest(rows)
    mean = round(float(prompts.mean()))
    prefill_s = _mean(lambda prompt: prefill_seconds(step, rows, prompt), prompts)
    return prefill_s + _mean(lambda output: decode_seconds(step, rows, mean, output, each=False), outputs)


def _mean(function: Callable[[int], float], values: NDArray[Any]) -> float:
    """Return the mean of a function of whole numbers, interpolated between them."""
    at = cache(function)
    low = np.floor(values)
    parts = zip(low.astype(int).tolist(), (values - low).tolist(), strict=True)
    return math.fsum(at(n) + (part * (at(n + 1) - at(n)) if part else 0.0) for n, part in parts) / len(values)


def _rows_that_fit(lengths: Lengths, server: Server) -> int:
    """Return the rows of the largest wave; more rows need more blocks, and no smaller ones."""
    if server.kv_blocks is None:
        return server.max_num_seqs
    fits, too_many = 0, min(server.max_num_seqs, server.kv_blocks) + 1
    while too_many - fits > 1:
        rows = (fits + too_many) // 2
        prompt, output = (float(longest.mean()) for longest in lengths.longest(rows))
        if rows * row_blocks(prompt, output, server) <= server.kv_blocks:
            fits = rows
        else:
            too_many = rows
    if not fits:
        raise InputError(f"the KV pool of {server.kv_blocks} blocks cannot hold one average request")
    return fits


def row_blocks(prompt_tokens: float, output_tokens: float, server: Server) -> int:
    """Return the blocks of each row of a wave with this longest prompt and longest output."""
    reserved = server.reserve_tokens
    tokens = reserved if isinstance(reserved, int) else prompt_tokens + output_tokens - 1
    return math.ceil(tokens / server.block_size)


def wave_seconds(step: StepTime, rows: int, prompt_tokens: int, output_tokens: int, *, each: bool = True) -> float:
    """Return the duration in seconds of a padded wave of equal rows; `each` as for `decode_seconds`."""
    prefill_s = prefill_seconds(step, rows, prompt_tokens)
    return prefill_s + decode_seconds(step, rows, prompt_tokens, output_tokens, each=each)


def prefill_seconds(step: StepTime, rows: int, prompt_tokens: int) -> float:
    """Return the duration in seconds of the prefill of a wave."""
    return step.seconds(Batch(prefill=((0, prompt_tokens),) * rows, sampled_rows=rows))


def decode_seconds(step: StepTime, rows: int, prompt_tokens: int, output_tokens: int, *, each: bool = True) -> float:
    """Return the duration in seconds of the output_tokens - 1 decode steps of a wave.

    Parameters
    ----------
    step : StepTime
    rows, prompt_tokens, output_tokens : int
    each : bool
        Whether each step is computed. If not, some are, by Gauss's rule: this is enough for one of many waves.
    """
    steps = output_tokens - 1
    if each or steps <= len(_NODES):
        first = Batch(rows, rows, rows * (prompt_tokens + 1), sampled_rows=rows)
        return math.fsum(step.durations(first, steps)) if steps > 0 else 0.0
    # A step has a length of 1: the integral goes from half a step before the first one to half a step after the last.
    contexts = np.rint(rows * (prompt_tokens + 0.5 + steps * _NODES)).astype(int)
    seconds = [step.seconds(Batch(rows, rows, context, sampled_rows=rows)) for context in contexts.tolist()]
    return steps * float(_WEIGHTS @ seconds)
