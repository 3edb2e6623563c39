"""The capacity of static batching with a pool that does not hold full waves: waves gathered from a sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.steptime.base import Batch, StepTime
from simqueue.theory.limits import Capacity, Server
from simqueue.theory.played import Played, bounds, servable, shuffled

_MOST_WAVES = 600
_MOST_REQUESTS = 8000
_SECTIONS = 6


def played_waves(
    step: StepTime, sample: tuple[NDArray[Any], NDArray[Any]], server: Server, known: Capacity
) -> Played | None:
    """Return the capacity by waves gathered from a sample, or None if they are too few.

    Parameters
    ----------
    step : StepTime
    sample : (prompt tokens, output tokens)
        Lengths of requests that the server admits.
    server : Server
        With static batching and a pool.
    known : Capacity
        The closed form's.
    """
    prompts, outputs = servable(*sample, server)
    if not len(prompts):
        return None
    chosen = shuffled(len(prompts), _MOST_REQUESTS)
    pairs = islice(cycle(zip(prompts[chosen].tolist(), outputs[chosen].tolist(), strict=True)), _MOST_REQUESTS)
    waves = np.array(list(islice(_waves(pairs, server), _MOST_WAVES)))
    if len(waves) < 2 * _SECTIONS:
        return None
    seconds = np.array([_seconds(step, *wave) for wave in waves.tolist()])
    sections = np.array_split(np.arange(len(waves)), _SECTIONS)
    rates = np.array([waves[one, 0].sum() / seconds[one].sum() for one in sections])
    rate = float(waves[:, 0].sum() / seconds.sum())
    rows, output = float(waves[:, 0].mean()), float(waves[:, 2].mean())
    found = replace(
        known,
        max_rate_rps=rate,
        binding="kv",
        limits_rps={"kv": rate},
        steps_per_request=output / rows,
        step_s=float(seconds.mean()) / output,
        running=rows,
    )
    return Played(found, *bounds(rate, rates), evictions=0.0, waits_for_blocks=True)


def _waves(pairs: Iterable[tuple[int, int]], server: Server) -> Iterator[tuple[int, int, int]]:
    """Yield rows, longest prompt and longest output of each wave: requests join until a padded row too many."""
    rows = prompt = output = 0
    for next_prompt, next_output in pairs:
        longest = max(prompt, next_prompt), max(output, next_output)
        blocks = (rows + 1) * _row_blocks(*longest, server)
        if rows and (rows == server.max_num_seqs or blocks > (server.kv_blocks or math.inf)):
            yield rows, prompt, output
            rows, longest = 0, (next_prompt, next_output)
        rows, (prompt, output) = rows + 1, longest


def _row_blocks(prompt: int, output: int, server: Server) -> int:
    reserve = server.reserve_tokens
    return -(-(reserve if isinstance(reserve, int) else prompt + output - 1) // server.block_size)


def _seconds(step: StepTime, rows: int, prompt: int, output: int) -> float:
    """Return the duration of a wave, with that of its decode steps by Simpson's rule."""
    prefill_s = step.seconds(Batch(prefill=((0, prompt),) * rows, sampled_rows=rows))
    if output <= 1:
        return prefill_s
    contexts = (prompt + 1, prompt + output / 2, prompt + output - 1)
    first, middle, last = (step.seconds(Batch(rows, rows, round(rows * one), sampled_rows=rows)) for one in contexts)
    return prefill_s + (output - 1) * (first + 4 * middle + last) / 6
