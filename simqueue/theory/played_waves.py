"""The capacity of static batching where waves are not full or not independent: waves gathered from a sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simqueue.steptime.base import StepTime
from simqueue.theory.limits import Capacity, Resource, Server
from simqueue.theory.played import SECTIONS, Played, bounds, servable
from simqueue.theory.waves import row_blocks, wave_seconds

_WAVES, _MOST_WAVES, _ROWS = 600, 3000, 40_000
"""Waves that are gathered, at least and at most, and their rows: more waves if they are small."""
_REQUESTS, _MOST_REQUESTS = 65_536, 262_144
"""Requests of which they are gathered: more only if large waves were too few for bounds, so that it takes little time.
So there are fewer than `_WAVES` with more than about 100 rows: but as many rows, by which the rate is as well known."""
_OFTEN = 0.5
"""Share of the waves that the pool cuts from which on it is what limits."""


class _Wave(NamedTuple):
    """Rows, longest prompt and longest output; and whether the pool was too small for one more row."""

    rows: int
    prompt: int
    output: int
    cut: bool


def played_waves(
    step: StepTime, sample: tuple[NDArray[Any], NDArray[Any]], server: Server, known: Capacity
) -> Played | None:
    """Return the capacity by waves gathered from a sample, or None if they are too few (of more than 20,000 rows).

    Parameters
    ----------
    step : StepTime
    sample : (prompt tokens, output tokens)
        Lengths of requests that the server admits.
    server : Server
        With static batching.
    known : Capacity
        The closed form's.
    """
    prompts, outputs = servable(*sample, server)
    if not len(prompts):
        return None
    requests = min(_MOST_REQUESTS, max(_REQUESTS, 3 * SECTIONS * server.max_num_seqs))
    chosen = np.random.default_rng(0).integers(len(prompts), size=requests)
    pairs = zip(prompts[chosen].tolist(), outputs[chosen].tolist(), strict=True)
    many = min(_MOST_WAVES, max(_WAVES, _ROWS // server.max_num_seqs))
    waves = list(islice(_waves(pairs, server), many))
    if len(waves) < 2 * SECTIONS:
        return None
    seconds = np.array([wave_seconds(step, one.rows, one.prompt, one.output, each=False) for one in waves])
    rows, outputs, cut = (np.array([getattr(one, name) for one in waves]) for name in ("rows", "output", "cut"))
    sections = np.array_split(np.arange(len(waves)), SECTIONS)
    rates = np.array([rows[one].sum() / seconds[one].sum() for one in sections])
    rate = float(rows.sum() / seconds.sum())
    binding: Resource = "kv" if cut.mean() > _OFTEN else "slots"
    found = replace(
        known,
        max_rate_rps=rate,
        binding=binding,
        limits_rps={binding: rate},
        steps_per_request=float(outputs.mean() / rows.mean()),
        step_s=float(seconds.mean() / outputs.mean()),
        running=float(rows.mean()),
    )
    return Played(found, *bounds(rate, rates), evictions=0.0, waits_for_blocks=bool(cut.any()))


def _waves(pairs: Iterable[tuple[int, int]], server: Server) -> Iterator[_Wave]:
    """Yield waves: requests join until there is no seat, or until the pool does not hold one more padded row."""
    pool = math.inf if server.kv_blocks is None else server.kv_blocks
    rows = prompt = output = 0
    for next_prompt, next_output in pairs:
        longest = max(prompt, next_prompt), max(output, next_output)
        full = rows == server.max_num_seqs
        if full or (rows and (rows + 1) * row_blocks(*longest, server) > pool):
            yield _Wave(rows, prompt, output, not full)
            rows, longest = 0, (next_prompt, next_output)
        rows, (prompt, output) = rows + 1, longest
