"""The capacity of a server from a played backlog, with bounds.

`Backlog` plays some hundred requests of the workload through the rules of the server and gives the content of the
steps. Here the steps get their durations. The requests of a play are few, and the longest ones do not end in it. So
what counts is the work that the steps do, over that of an average request, by its cost in the closed form. What is left
of chance is seen in the differences between sections of the play, and is part of the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.steptime.base import StepTime
from simqueue.theory.affine import Composition, step_seconds
from simqueue.theory.backlog import Backlog, Content
from simqueue.theory.cost import request_cost
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import COMPUTE_BOUND, Capacity, Resource, Server

SAMPLE = 400
"""Requests of which the backlog consists; they come again and again."""
LEAST_REQUESTS = 300
"""Least number of requests that are played to their end, if the steps suffice."""
CONTENTS = 1200, 2400
"""Least and most kinds of steps of a play; they bound its time to some 15 to 40 ms."""
_GENERATIONS = 8
"""Requests that are played, at least, over those that run at one time: so that a section is not shorter than the time
in which equal requests, which started together, end together."""
_WARM_UP = 0.25
SECTIONS = 6
_LEAST_IN_SECTION = 5
_CERTAIN = 0.08
"""What the bounds allow beside chance: the simplifications of the play, and what the sample does not contain."""
QUANTILE = 2.570581835636314
"""Student's, for 95 % and `SECTIONS`. To compute it would load scipy.special: a tenth of the time of a short run."""
_MANY_EVICTIONS = 0.05
"""With more evictions per request it is the pool that limits, whatever the head of the queue waits for."""
_DECODE_GROUPS, _PROMPT_GROUPS = 8, 24


@dataclass(frozen=True, slots=True)
class Played:
    """What a played backlog shows.

    Attributes
    ----------
    capacity : Capacity
    low_rps, high_rps : float
        Bounds of the capacity.
    evictions : float
        Per request.
    waits_for_blocks : bool
        Whether the head of the queue waited for blocks in any step, or a request was evicted.
    """

    capacity: Capacity
    low_rps: float
    high_rps: float
    evictions: float
    waits_for_blocks: bool


def played(
    step: StepTime, sample: tuple[NDArray[Any], NDArray[Any]], lengths: Lengths, server: Server, known: Capacity
) -> Played | None:
    """Return the capacity by a played backlog, or None if too few requests come to their end.

    Parameters
    ----------
    step : StepTime
    sample : (prompt tokens, output tokens)
        Lengths of requests that the server admits.
    lengths : Lengths
        Of all requests.
    server : Server
        Of any batching but static.
    known : Capacity
        The closed form's.
    """
    prompts, outputs = servable(*sample, server)
    if not len(prompts):
        return None
    chosen = spread(prompts, outputs, SAMPLE)
    backlog = Backlog(cycle(zip(prompts[chosen].tolist(), outputs[chosen].tolist(), strict=True)), server)
    backlog.play(max(LEAST_REQUESTS, math.ceil(_GENERATIONS * known.running)), CONTENTS)
    ends = np.array(backlog.done)
    marks = _marks(ends)
    if marks is None:
        return None
    seconds = np.concatenate(([0.0], np.cumsum(_durations(step, backlog.contents))))
    evictions = backlog.evictions / len(backlog.done)
    limit: Resource = "kv" if evictions > _MANY_EVICTIONS else backlog.limit
    cost = request_cost(step, lengths, server, known, limit)
    work = np.concatenate(([0.0], np.cumsum(cost.of_steps(backlog.contents))))
    rates = np.diff(work[marks]) / np.diff(seconds[marks])
    done = float(work[marks[-1]] - work[marks[0]])
    rate = done / float(seconds[marks[-1]] - seconds[marks[0]])
    found = _capacity(rate, backlog.contents[marks[0] : marks[-1]], done, cost.resource, known)
    pressed = bool(backlog.limited["kv"] or backlog.evictions)
    return Played(found, *bounds(rate, rates), evictions, pressed)


def bounds(rate: float, rates: NDArray[np.float64]) -> tuple[float, float]:
    """Return bounds of a rate that was seen in a play, from the rates of its `SECTIONS`."""
    half = _CERTAIN + QUANTILE * float(rates.std(ddof=1)) / math.sqrt(SECTIONS) / rate
    return rate * max(0.0, 1 - half), rate * (1 + half)


def _shuffled(many: int) -> NDArray[np.int64]:
    """Return indices in a random order that is always the same."""
    return np.random.default_rng(0).permutation(many)


def _order(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices that sort lengths, equal ones as they are; numpy sorts numbers of few bits far faster."""
    return np.argsort(lengths.astype(np.min_scalar_type(int(lengths.max()))), kind="stable")


def spread(prompts: NDArray[Any], outputs: NDArray[Any], many: int) -> NDArray[np.int64]:
    """Return the indices of about `many` pairs that represent the sample, in a random order that is always the same.

    The pairs are sorted into groups by prompt, and each group is read at equal distances in the order of outputs. Each
    begins at another one, so that all parts of the distribution of outputs are there, its tail too.
    """
    side = max(1, math.isqrt(min(many, len(prompts))))
    begins = (_shuffled(side) + 0.5) / side
    chosen = []
    for begin, group in zip(begins, np.array_split(_order(prompts), side), strict=True):
        ranked = group[_order(outputs[group])]
        chosen.append(ranked[((np.arange(side) + begin) * len(ranked) / side).astype(int)])
    together = np.concatenate(chosen)
    return together[_shuffled(len(together))]


def servable(prompts: NDArray[Any], outputs: NDArray[Any], server: Server) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the requests that fit into the pool alone."""
    if server.kv_blocks is None:
        return prompts, outputs
    fits = prompts + outputs - 1 <= (server.kv_blocks + server.spare_blocks) * server.block_size
    return prompts[fits], outputs[fits]


def _marks(ends: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the contents at which sections of the play end: in each, about equally many requests leave."""
    if len(ends) < 2:
        return None
    ranks = np.linspace(_WARM_UP * (len(ends) - 1), len(ends) - 1, SECTIONS + 1).astype(int)
    marks = np.unique(ends[ranks])
    least = np.diff(np.searchsorted(ends, marks, side="right"))
    return marks if len(marks) == SECTIONS + 1 and least.min() >= _LEAST_IN_SECTION else None


def _durations(step: StepTime, contents: Sequence[Content]) -> NDArray[np.float64]:
    """Return the duration of each content in seconds; similar steps have that of their average."""
    table = np.array(contents, dtype=np.float64)
    seconds = np.empty(len(table))
    for kind, many in ((table[:, 3] == 0, _DECODE_GROUPS), (table[:, 3] > 0, _PROMPT_GROUPS)):
        rows = np.flatnonzero(kind)
        rows = rows[np.lexsort((table[rows, 1], table[rows, 4]))]
        for group in np.array_split(rows, min(many, len(rows)) or 1):
            if len(group):
                seconds[group] = table[group, 0] * _average_s(step, table[group])
    return seconds


def _average_s(step: StepTime, rows: NDArray[np.float64]) -> float:
    weights = rows[:, 0] / rows[:, 0].sum()
    _, decodes, context, pieces, tokens, *_ = (weights @ rows).tolist()
    past = float((weights * rows[:, 4]) @ rows[:, 5]) / tokens if tokens else 0.0
    return step_seconds(step, Composition(decodes, context, tokens, pieces, max(0.0, past)))


def _capacity(rate: float, contents: Sequence[Content], requests: float, limit: Resource, known: Capacity) -> Capacity:
    steps = sum(content.steps for content in contents)
    running = sum(content.steps * content.running for content in contents) / steps
    limits: dict[Resource, float] = {name: max(rate, other) for name, other in known.limits_rps.items()}
    limits[limit] = rate
    named: Resource = "compute" if limits["compute"] < COMPUTE_BOUND * rate else limit
    each = steps / requests
    return replace(
        known,
        max_rate_rps=rate,
        binding=named,
        limits_rps=limits,
        steps_per_request=each,
        step_s=1 / (rate * each),
        running=running,
    )
