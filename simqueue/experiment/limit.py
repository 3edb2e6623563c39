"""The capacity of a policy under a workload: the closed form where it was compared, a played backlog elsewhere."""

from __future__ import annotations

import math

from simqueue.experiment.demand import Demand
from simqueue.experiment.limit_of_waves import limit_of_waves
from simqueue.steptime import StepTime
from simqueue.theory.affine import fit
from simqueue.theory.capacity import capacity, composition
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import COMPUTE_BOUND, Capacity, Limit, Server
from simqueue.theory.played import played

NEAR = 1.25
"""If the limits by slots and by token budget are within this factor, and the budget is below SMALL prompts, simulated
capacities were 3 to 15 % below the closed form (8B on the roofline of an H100, 64 slots, budgets of 512 to 1,536,
prompts of 1,050 tokens)."""
SMALL = 2.0
DEVIATIONS = 3.0
"""The pool counts as full at times if its mean level is within so many standard deviations of the top. Those of the
level are taken as 1 / sqrt(running requests) of its mean, as if lengths were exponential."""
UNFILLED, BESIDE = 0.02, 1.1
"""The closed form takes the token budget as full. Whole prompts leave about half of the next one unused. This counts
above that share of the budget, if what is filled limits at no more than that multiple of the capacity."""
MOST_RUNNING = 2500
"""Plays with more requests at one time would take too long."""
_OF_PROMPTS = 1000
"""Policies with whole prompts are in doubt if the longest of so many prompts is longer than the budget."""
_TOGETHER = "equal outputs that start together end together, and so do their successors"
"""The closed form stays a bound: it is right for requests that are spread evenly over time."""
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
    if described.batching == "static":
        return limit_of_waves(step_time, described, asked, closed)
    full, other = _full(closed, described), _other_doubt(step_time, closed, described, asked.lengths)
    doubt = full or other
    if not doubt:
        return Limit(closed)
    if asked.sample is None or closed.running > MOST_RUNNING:
        return Limit(closed, doubt=doubt)
    found = played(step_time, asked.sample, asked.lengths, described, closed)
    if found is None:
        return Limit(closed, doubt=f"{doubt}, and too few requests end in a short backlog")
    if full and closed.binding != "kv" and not found.waits_for_blocks:
        if not other:
            return Limit(closed)
        doubt = other
    high_rps = max(found.high_rps, closed.max_rate_rps) if doubt == _TOGETHER else found.high_rps
    return Limit(found.capacity, found.low_rps, high_rps, doubt)


def _full(closed: Capacity, described: Server) -> str:
    """Return that the pool is full at times, which the closed form ignores, or an empty text."""
    pressed_rps = (1 + DEVIATIONS / math.sqrt(closed.running)) * closed.max_rate_rps
    if closed.limits_rps.get("kv", math.inf) >= pressed_rps:
        return ""
    if described.reserve_tokens is not None:
        return "the KV pool is full at times"
    return "the KV pool is full at times, and evicts requests whose tokens are computed again"


def _other_doubt(step_time: StepTime, closed: Capacity, described: Server, lengths: Lengths) -> str:
    """Return why the closed form does not describe the policy though the pool is large enough, or an empty text."""
    at = composition(lengths, closed.steps_per_request, described)
    if lengths.output_variance <= _ALIKE * lengths.output**2 and not fit(step_time, at).exact:
        return _TOGETHER
    return _delayed(closed, described, lengths)


def _delayed(closed: Capacity, described: Server, lengths: Lengths) -> str:
    """Return how the budget delays prompts in a way that the closed form ignores, or an empty text."""
    budget = described.max_num_batched_tokens
    if budget is None:
        return ""
    if described.batching != "chunked":
        if lengths.longest(_OF_PROMPTS)[0].mean() > budget:
            return "prompts longer than the token budget run alone, when nothing else runs"
        unfilled = lengths.new_square / (2 * lengths.new) / budget  # half of the next prompt, as tokens meet it
        filled_rps = (1 - unfilled) * closed.limits_rps.get("tokens", math.inf)
        doubtful = unfilled > UNFILLED and filled_rps < BESIDE * closed.max_rate_rps
        return "whole prompts do not fill the token budget" if doubtful else ""
    if budget >= SMALL * lengths.new:
        return ""
    # Prompts wait for the token budget while they hold slots.
    slots_rps, compute_rps = closed.limits_rps["slots"], closed.limits_rps["compute"]
    budget_rps = min(closed.limits_rps["tokens"], compute_rps)
    if not 1 / NEAR < budget_rps / slots_rps < NEAR or compute_rps < COMPUTE_BOUND * slots_rps:
        return ""
    return (
        f"slots ({slots_rps:.3g} req/s) and token budget ({budget_rps:.3g} req/s, about one prompt) "
        "limit at nearly the same rate"
    )
