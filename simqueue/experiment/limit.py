"""The capacity of a policy under a workload: the closed form where it was compared, a played backlog elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from simqueue.experiment.demand import Demand
from simqueue.experiment.limit_of_waves import limit_of_waves
from simqueue.steptime import StepTime
from simqueue.theory.affine import fit
from simqueue.theory.capacity import capacity, composition, prompts_together
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import COMPUTE_BOUND, Capacity, Limit, Server
from simqueue.theory.played import played
from simqueue.theory.rhythm import keeps_rhythm

NEAR = 1.25
"""If the limits by slots and by token budget are within this factor, and the budget is below SMALL prompts, prompts
wait for the budget while they hold slots, and the closed form knows only that they wait."""
SMALL = 2.0
DEVIATIONS = 3.0
"""The pool counts as full at times if its mean level is within so many standard deviations of the top. Those of the
level are taken as 1 / sqrt(running requests) of its mean, as if lengths were exponential."""
UNFILLED, BESIDE = 0.02, 1.1
"""The closed form takes the token budget as full. Whole prompts leave about half of the next one unused. This counts
above that share of the budget, if what is filled limits at no more than that multiple of the capacity."""
_SPARE = 0.4
"""Prompts in a step of their own are cut by the budget in some steps if they need more of it on average."""
MOST_RUNNING = 2500
"""Plays with more requests at one time would take too long."""
_OF_PROMPTS = 200
"""A prompt that runs alone costs about as much as two others per seat, because these end first. So such prompts count
if they are more than one in so many, for each seat."""
_TOGETHER = "outputs of equal length that start together end together, and so do their successors"
"""The closed form stays a bound: it is right for requests that are spread evenly over time."""
_SAME = 0.02
"""Relative difference from the closed form up to which it makes no difference that they end together."""
_ALIKE = 0.01
"""Outputs whose squared coefficient of variation is smaller end together if they start together."""


def limit_of(step_time: StepTime, described: Server, asked: Demand) -> Limit:
    """Return the capacity of the policy that `described` describes.

    Raises
    ------
    InputError
        As `capacity`.
    """
    closed = capacity(step_time, asked.lengths, described)
    if described.max_num_seqs == 1 and asked.sample is not None:
        return Limit(closed)  # one after another: there is nothing that the closed form ignores
    if described.batching == "static":
        return limit_of_waves(step_time, described, asked, closed)
    full, other = _full(closed, described), _other_doubt(step_time, closed, described, asked)
    return _by_play(step_time, described, asked, closed, full, other) if full or other else Limit(closed)


def _by_play(step_time: StepTime, described: Server, asked: Demand, closed: Capacity, full: str, other: str) -> Limit:
    """Return the capacity by a played backlog, unless it takes the doubts away."""
    doubt = full or other
    if asked.sample is None or closed.running > MOST_RUNNING:
        return Limit(closed, doubt=doubt)
    found = played(step_time, asked.sample, asked.lengths, described, closed)
    if found is None:
        return Limit(closed, doubt=f"{doubt}, and too few requests end in a short backlog")
    if full and closed.binding != "kv" and not found.waits_for_blocks:
        doubt = other
    closed_rps, low_rps, high_rps = closed.max_rate_rps, found.low_rps, found.high_rps
    if doubt == _TOGETHER and abs(found.capacity.max_rate_rps / closed_rps - 1) <= _SAME:
        return Limit(closed)
    if other == _TOGETHER:
        low_rps, high_rps = min(low_rps, (1 - _SAME) * closed_rps), max(high_rps, (1 + _SAME) * closed_rps)
    return Limit(found.capacity, low_rps, high_rps, doubt) if doubt else Limit(closed)


def _full(closed: Capacity, described: Server) -> str:
    """Return that the pool is full at times, which the closed form ignores, or an empty text."""
    pressed_rps = (1 + DEVIATIONS / math.sqrt(closed.running)) * closed.max_rate_rps
    if closed.limits_rps.get("kv", math.inf) >= pressed_rps:
        return ""
    if described.reserve_tokens is not None:
        return "the KV pool is full at times"
    return "the KV pool is full at times, and evicts requests whose tokens are computed again"


def _other_doubt(step_time: StepTime, closed: Capacity, described: Server, asked: Demand) -> str:
    """Return why the closed form does not describe the policy though the pool is large enough, or an empty text."""
    lengths, at = asked.lengths, composition(asked.lengths, closed.steps_per_request, described)
    apart = described.batching == "separate"
    # The steps for which a seat is taken: of decodes only, if prompts have steps of their own.
    steps = described.depth - 1 - apart
    if lengths.output > 1 and _in_rhythm(asked, steps) and (apart or not fit(step_time, at).exact):
        return _TOGETHER
    return _delayed(closed, described, lengths)


def _in_rhythm(asked: Demand, more: int) -> bool:
    """Whether requests that start together end together; `more` steps than outputs is what each takes."""
    if asked.sample is None:
        return asked.lengths.output_variance <= _ALIKE * asked.lengths.output**2
    return keeps_rhythm(asked.sample[1] + more)


def _delayed(closed: Capacity, described: Server, lengths: Lengths) -> str:
    """Return how the budget delays prompts in a way that the closed form ignores, or an empty text."""
    budget = described.max_num_batched_tokens
    if budget is None:
        return ""
    if described.batching != "chunked":
        return _whole(closed, described, lengths, budget)
    if budget >= SMALL * lengths.new:
        return ""
    # Prompts wait for the token budget while they hold slots.
    slots_rps, compute_rps = closed.limits_rps["slots"], closed.limits_rps.get("compute", math.inf)
    budget_rps = min(closed.limits_rps.get("tokens", math.inf), compute_rps)
    if not 1 / NEAR < budget_rps / slots_rps < NEAR or compute_rps < COMPUTE_BOUND * slots_rps:
        return ""
    return (
        f"slots ({slots_rps:.3g} req/s) and token budget ({budget_rps:.3g} req/s, about one prompt) "
        "limit at nearly the same rate"
    )


def _whole(closed: Capacity, described: Server, lengths: Lengths, budget: int) -> str:
    """Return how the budget delays whole prompts, or an empty text."""
    longest = lengths.longest(_OF_PROMPTS * described.max_num_seqs)[0]

    def some_exceed(tokens: float) -> bool:
        return bool(np.mean(longest > tokens) > -math.expm1(-1))  # more than one in so many

    if some_exceed(budget):
        return "prompts longer than the token budget run alone, when nothing else runs"
    decodes = closed.running - 1 if described.batching == "mixed" and lengths.output > 1 else 0
    waits = "prompts that do not fit the token budget beside decodes wait until fewer run"
    return _unfilled(closed, described, lengths, budget) or (waits if some_exceed(budget - decodes) else "")


def _unfilled(closed: Capacity, described: Server, lengths: Lengths, budget: int) -> str:
    """Return that whole prompts leave much of the budget unused and the budget limits, or an empty text."""
    unused = lengths.new_square / (2 * lengths.new)  # half of the next prompt, as tokens meet it
    if described.batching == "separate":
        unlimited = replace(described, max_num_batched_tokens=None)
        wanted = prompts_together(lengths, unlimited, closed.steps_per_request) * lengths.new
        limits = wanted > _SPARE * budget
    else:
        filled_rps = (1 - unused / budget) * closed.limits_rps.get("tokens", math.inf)
        limits = filled_rps < BESIDE * closed.max_rate_rps
    return "whole prompts do not fill the token budget" if limits and unused > UNFILLED * budget else ""
