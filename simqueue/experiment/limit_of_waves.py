"""The capacity of padded waves: the closed form where they are full and independent, gathered waves elsewhere."""

from __future__ import annotations

import math

from simqueue.experiment.demand import Demand, Sample
from simqueue.steptime import StepTime
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import Capacity, Limit, Server
from simqueue.theory.played_waves import played_waves
from simqueue.theory.waves import best_waves, row_blocks

_CUT = "the KV pool does not hold all waves full"
_TOGETHER = "long prompts and long outputs come together"
_SORTED = "waves in the order of lengths have less padding"
_INDEPENDENT = 0.05
"""Largest correlation of prompts and outputs with which they count as independent."""
_SAME = 0.02
"""Relative difference between closed form and gathered waves up to which the correlation makes no difference."""
_BETTER = 1.05
"""How much more smaller waves must carry than full ones before it is told."""
_ERROR = 0.08
"""What the bounds of a closed form allow."""


def limit_of_waves(step_time: StepTime, described: Server, asked: Demand, closed: Capacity) -> Limit:
    """Return the capacity of static batching, whose closed form is `closed`."""
    if described.sorts_waves and _vary(asked.lengths):
        return Limit(closed, (1 - _ERROR) * closed.max_rate_rps, doubt=_SORTED)
    limit = _gathered(step_time, described, asked, closed)
    if described.fills_waves:
        return limit
    best = best_waves(step_time, asked.lengths, described)
    full_rps = limit.capacity.max_rate_rps
    if best.max_rate_rps < _BETTER * full_rps:
        return limit
    low_rps = limit.low_rps or full_rps * (1 - _ERROR)
    high_rps = max(limit.high_rps or 0.0, best.max_rate_rps * (1 + _ERROR))
    return Limit(limit.capacity, low_rps, high_rps, _unstable(best, limit.capacity))


def _unstable(best: Capacity, full: Capacity) -> str:
    return (
        f"full waves carry {full.max_rate_rps:.3g} req/s, waves of {best.running:.0f} with less padding "
        f"{best.max_rate_rps:.3g}, so only a short queue stays short"
    )


def _gathered(step_time: StepTime, described: Server, asked: Demand, closed: Capacity) -> Limit:
    """Return the capacity of full queues: by gathered waves where they are not those of the closed form."""
    lengths, sample = asked.lengths, asked.sample
    if sample is None or not _vary(lengths):
        return Limit(closed)
    cut, correlated = _can_be_cut(sample, described), _correlated(lengths)
    if not (cut or correlated):
        return Limit(closed)
    found = played_waves(step_time, sample, described, closed)
    doubt = _CUT if cut else _TOGETHER
    if found is None:
        return Limit(closed, doubt=f"{doubt}, and the lengths give too few waves")
    if not found.waits_for_blocks:
        same = abs(found.capacity.max_rate_rps / closed.max_rate_rps - 1) <= _SAME
        if same or not correlated:
            return Limit(closed)
        doubt = _TOGETHER
    return Limit(found.capacity, found.low_rps, found.high_rps, doubt)


def _vary(lengths: Lengths) -> bool:
    return lengths.prompt_variance > 0 or lengths.output_variance > 0


def _can_be_cut(sample: Sample, described: Server) -> bool:
    """Whether a full wave of the longest prompt and the longest output is larger than the pool."""
    if described.kv_blocks is None:
        return False
    prompts, outputs = sample
    return described.max_num_seqs * row_blocks(prompts.max(), outputs.max(), described) > described.kv_blocks


def _correlated(lengths: Lengths) -> bool:
    covariance = lengths.product - lengths.prompt * lengths.output
    spread = math.sqrt(lengths.prompt_variance * lengths.output_variance)
    return abs(covariance) > _INDEPENDENT * spread
